import { hostname, networkInterfaces } from "node:os";
import { CallError } from "../../client/contract.ts";
import { SkeinError } from "../../core/errors.ts";
import { isLoopback, normalizeAddress } from "../../gateway/auth/addresses.ts";
import { readTokenFile, tokenPath } from "../../gateway/auth/admin-token.ts";
import type { RunningGateway } from "../../gateway/running-file.ts";
import { findRunning } from "../../gateway/running-file.ts";
import type { WatchedCalls } from "../../protocol/calls.ts";
import type { HelloPayload } from "../../protocol/frames.ts";
import type { ConfigurationPayload } from "../../protocol/upkeep.ts";
import { printNotice } from "../output/answer.ts";
import type { Invocation } from "../output/invocation.ts";

export interface GatewayConnection extends WatchedCalls {
  readonly hello: HelloPayload;
  close(): Promise<void>;
}

/** How long a gateway has to respond, and how long a command tries to reconnect to it. */
const patience = { timeoutMs: 15_000, reconnect: { forMs: 10_000 } };

const tokenVariable = "SKEIN_TOKEN";

/**
 * Connects to the folder's gateway. Returns `null` if none is running or it cannot be reached. The caller can then open
 * the folder directly, which is safe while a gateway is running. Throws if the gateway rejects the token.
 */
export async function connectToGateway(cli: Invocation, root: string): Promise<GatewayConnection | null> {
  const running = findRunning(root);
  if (running === null || isForeignLoopback(running)) return null;
  const { url } = running;
  // The address comes from a file in the folder, so a token from the environment is sent only to this machine.
  const isHere = isThisMachine(new URL(url).hostname);
  const given = isHere ? cli.terminal.env[tokenVariable] || null : null;
  const token = given ?? readTokenFile(root);
  const notReached = (why: string) =>
    printNotice(
      cli,
      `The gateway at ${url} was not used: ${why} The command opens the folder directly instead.`,
    );
  if (token === null) {
    const or = isHere ? ` or ${tokenVariable}` : `, and ${tokenVariable} is never sent to another machine`;
    notReached(`there is no token in ${tokenPath(root)}${or}.`);
    return null;
  }
  const { connect } = await import("../../client/connect.ts");
  try {
    return await connect(url, { token, client: { name: "skein-cli" }, ...patience });
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    if (error.code === "unauthorized") throw tokenRefused(url, given === null ? tokenPath(root) : null);
    notReached(error.message);
    return null;
  }
}

/** Returns the configuration of the folder's gateway, or `null` if none is running or it cannot be reached. */
export async function fetchGatewayConfig(
  cli: Invocation,
  root: string,
): Promise<ConfigurationPayload | null> {
  const running = await connectToGateway(cli, root);
  return running === null ? null : running.call("config.get", {}).finally(() => running.close());
}

/** A loopback address on another machine or in another container cannot be reached from here. */
function isForeignLoopback({ url, isElsewhere }: RunningGateway): boolean {
  return isElsewhere && /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(new URL(url).hostname);
}

function isThisMachine(name: string): boolean {
  const address = normalizeAddress(name.replace(/^\[|\]$/g, ""));
  if (address === null) return [hostname().toLowerCase(), "localhost"].includes(name);
  const own = Object.values(networkInterfaces()).flatMap((each = []) => each.map((one) => one.address));
  return isLoopback(address) || own.some((each) => normalizeAddress(each) === address);
}

function tokenRefused(url: string, file: string | null): SkeinError {
  return new SkeinError("unauthorized", {
    problem: `The gateway at ${url} rejected the token in ${file ?? tokenVariable}`,
    advice:
      file === null
        ? `Set ${tokenVariable} to a valid token, or unset it to use the folder's token`
        : "Remove that file and restart the gateway to create a new token",
  });
}
