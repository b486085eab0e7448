import { join } from "node:path";
import type { GatewayPieces } from "../../src/app/gateway.ts";
import { gatewayPieces } from "../../src/app/gateway.ts";
import { openGateway } from "../../src/cli/gateway/open-gateway.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Clock } from "../../src/index.ts";
import { storeEnv } from "./empty-store.ts";
import type { WholeGateway } from "./whole-gateway.ts";
import { configure, describeGateway } from "./whole-gateway.ts";

export interface InsideOptions {
  /** The text of `skein.yaml`. */
  readonly config: string;
  /** Replaces the corresponding parts of `skein start`. */
  readonly pieces: Partial<GatewayPieces>;
  readonly clock: Clock;
}

/** Like `wholeGateway`, but with replaced parts and the test's own clock. */
export async function openGatewayWith({ config, pieces, clock }: InsideOptions): Promise<WholeGateway> {
  const home = temporaryFolder("skein-gateway-");
  const root = join(home.path, "root");
  configure(home.path, config);
  const where = { cwd: home.path, root, env: { HOME: home.path, ...(await storeEnv(root)) } };
  const all = { ...gatewayPieces, ...pieces };
  const open = await openGateway({ where, overrides: { port: 0 }, version: "0.0.0", pieces: all, clock });
  if (!open.isMine) throw new Error("another gateway is running for this folder");
  const stop = async () => void (await open.close(0));
  return describeGateway({ url: open.url, root, stop, remove: () => home.remove() });
}
