import { createServer } from "node:net";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { checkBinding } from "../../gateway/auth/allowed-hosts.ts";
import { findRunning } from "../../gateway/running-file.ts";
import type { ServerSettings } from "../../gateway/server/server-options.ts";
import type { FindingPayload } from "../../protocol/command-payloads.ts";

/** Adds a remedy to an error from listening. Returns any other error unchanged. */
export async function portError(
  error: unknown,
  { host, port }: Pick<ServerSettings, "host" | "port">,
): Promise<unknown> {
  // The server might have wrapped the system error.
  const system = error instanceof SkeinError ? error.cause : error;
  const reason = reasons[(system as { readonly code?: string } | undefined)?.code ?? ""];
  if (reason === undefined) return error;
  const [problem, advice] = reason(host, port, isTaken(error) && (await isGateway(host, port)));
  return new SkeinError("unavailable", { problem, advice }, { cause: system });
}

/** Whether another program is using the port. */
export function isTaken(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: string; readonly cause?: { readonly code?: string } };
  return code === "EADDRINUSE" || cause?.code === "EADDRINUSE";
}

/** How long to wait for a response from the program on the port. */
const answerMs = 1000;

async function isGateway(host: string, port: number): Promise<boolean> {
  const name = { "0.0.0.0": "127.0.0.1", "::": "[::1]" }[host] ?? (host.includes(":") ? `[${host}]` : host);
  const { noToken } = await import("../../gateway/server/refusals.ts");
  try {
    const url = `http://${name}:${port}/openapi.json`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(answerMs) });
    return (await answer.text()).includes(JSON.stringify(noToken.message));
  } catch {
    return false; // another protocol, or no response in time
  }
}

type Reason = (host: string, port: number, isSkein: boolean) => readonly [problem: string, advice: string];

const reasons: Readonly<Record<string, Reason>> = {
  EADDRINUSE: (host, port, isSkein) => [
    `Port ${port} on ${host} is in use by ${isSkein ? "another folder's Skein gateway" : "another program"}`,
    "Stop it, or use a different port: --port <number> (0 for any free port), or gateway.port in the configuration",
  ],
  EACCES: (host, port) => [
    `This user is not allowed to listen on port ${port} on ${host}`,
    "Use a port number of 1024 or higher: --port <number>, or gateway.port in the configuration",
  ],
  EADDRNOTAVAIL: (host) => [
    `${host} is not an address of this machine`,
    "Use one of this machine's addresses: --host <address>, or gateway.host in the configuration",
  ],
  ENOTFOUND: (host) => [
    `The host name ${host} could not be resolved`,
    "Use one of this machine's addresses: --host <address>, or gateway.host in the configuration",
  ],
};

/**
 * Returns findings about the configured address: the running gateway, or the reason why a gateway could not listen
 * there.
 */
export async function checkPort({
  gateway,
  store,
}: Pick<Config, "gateway" | "store">): Promise<FindingPayload[]> {
  const { host, port, expose } = gateway;
  const finding = (severity: FindingPayload["severity"], what: string, remedy: string): FindingPayload => ({
    area: "ports",
    severity,
    file: `${host}:${port}`,
    what,
    remedy,
    fixable: false,
    fixed: false,
  });
  const running = findRunning(store.path);
  if (running !== null) {
    const what = `This folder's gateway is listening at ${running.url} (process ${running.pid})`;
    return [finding("note", what, "No action is needed")];
  }
  try {
    checkBinding(host, expose);
    await tryListening(host, port);
    return [];
  } catch (error) {
    const described = await portError(error, gateway);
    if (!(described instanceof SkeinError)) throw described;
    return [
      finding("warning", described.message.slice(0, -described.remedy.length).trim(), described.remedy),
    ];
  }
}

/** Listens briefly without accepting connections. */
export function tryListening(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject).listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
