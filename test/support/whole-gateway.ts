import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gatewayPieces } from "../../src/app/gateway-pieces.ts";
import type { GatewayPieces } from "../../src/app/pieces.ts";
import type { OpenGateway } from "../../src/cli/gateway/open-gateway.ts";
import { openGateway } from "../../src/cli/gateway/open-gateway.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Params, Result, SkeinClient } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Clock } from "../../src/index.ts";

/** The real gateway in this process, as `skein start` opens it, on a folder and a port of its own. */
export interface WholeGateway {
  readonly url: string;
  readonly root: string;
  /** The admin token of the folder. */
  readonly admin: string;
  readonly open: OpenGateway;
  /** A token with these rights. */
  token(request: Params<"tokens.create">): Promise<string>;
  rpc(
    method: string,
    params?: unknown,
    token?: string | null,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
  client(token?: string): Promise<SkeinClient>;
  close(): Promise<void>;
}

export interface WholeOptions {
  /** Text of `skein.yaml`; the rehearsal model answers anyway. */
  readonly config?: string;
  readonly folder?: TemporaryFolder;
  /** Instead of those of `skein start`. */
  readonly pieces?: Partial<GatewayPieces>;
  readonly clock?: Clock;
}

export async function wholeGateway(options: WholeOptions = {}): Promise<WholeGateway> {
  const { config = "", folder, clock = systemClock } = options;
  const home = folder ?? temporaryFolder("skein-gateway-");
  const root = join(home.path, "root");
  const defaults = /^"?defaults"?:/m.test(config) ? "" : "defaults: { model: rehearsal/basic }\n";
  const usual = `${defaults}logging: { level: error, file: ${join(home.path, "log")} }\n`;
  writeFileSync(join(home.path, "skein.yaml"), usual + config);
  const where = { cwd: home.path, root, env: { HOME: home.path } };
  const pieces = { ...gatewayPieces, ...options.pieces };
  const open = await openGateway({ where, asked: { port: 0 }, version: "0.0.0", pieces, clock });
  if (!open.isMine) throw new Error("another gateway runs on this folder");
  const { url } = open;
  const admin = readFileSync(join(root, "token"), "utf8").trim();
  const clients: SkeinClient[] = [];
  const rpc: WholeGateway["rpc"] = async (method, params = {}, token = admin) => {
    const answer = await fetch(`${url}/rpc/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(params),
    });
    return { status: answer.status, body: await answer.json() };
  };
  return {
    url,
    root,
    admin,
    open,
    rpc,
    token: async (request) => {
      const { body } = await rpc("tokens.create", request);
      return (body as Result<"tokens.create">).token;
    },
    client: async (token = admin) => {
      const client = await connect(url, { token });
      clients.push(client);
      return client;
    },
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await open.close(0);
      if (folder === undefined) home.remove();
    },
  };
}
