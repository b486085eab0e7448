import { createServer } from "node:net";
import type { Config } from "../../config/sections/all.ts";
import { SkeinError } from "../../core/errors.ts";
import { checkBinding } from "../../gateway/auth/allowed-hosts.ts";
import { findRunning } from "../../gateway/running-file.ts";
import type { ServerSettings } from "../../gateway/server/server-options.ts";
import type { FindingPayload } from "../../protocol/command-payloads.ts";

/** Why it cannot listen there, with what to do; everything else as it is. */
export async function portError(
  error: unknown,
  { host, port }: Pick<ServerSettings, "host" | "port">,
): Promise<unknown> {
  // The server may have told it in words of its own already.
  const system = error instanceof SkeinError ? error.cause : error;
  const reason = reasons[(system as { readonly code?: string } | undefined)?.code ?? ""];
  if (reason === undefined) return error;
  const [problem, advice] = reason(host, port, isTaken(error) && (await isGateway(host, port)));
  return new SkeinError("unavailable", { problem, advice }, { cause: system });
}

/** Whether somebody listens there already, as the system said it or as the server did. */
export function isTaken(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: string; readonly cause?: { readonly code?: string } };
  return code === "EADDRINUSE" || cause?.code === "EADDRINUSE";
}

/** How long a program on the port may take to say that it is a gateway. */
const answerMs = 1000;

async function isGateway(host: string, port: number): Promise<boolean> {
  const name = { "0.0.0.0": "127.0.0.1", "::": "[::1]" }[host] ?? (host.includes(":") ? `[${host}]` : host);
  const { welcomeLine } = await import("../../gateway/server/router.ts");
  try {
    const answer = await fetch(`http://${name}:${port}/`, { signal: AbortSignal.timeout(answerMs) });
    return (await answer.text()).startsWith(welcomeLine);
  } catch {
    return false; // another protocol, or nothing that answers in time
  }
}

type Reason = (host: string, port: number, isSkein: boolean) => readonly [problem: string, advice: string];

const reasons: Readonly<Record<string, Reason>> = {
  EADDRINUSE: (host, port, isSkein) => [
    `Port ${port} at ${host} is taken by ${isSkein ? "the Skein gateway of another folder" : "another program"}`,
    "End that one, or listen elsewhere: --port <number>, 0 for any that is free, or gateway.port in the configuration",
  ],
  EACCES: (host, port) => [
    `Port ${port} at ${host} is not for this user`,
    "Take one from 1024 on: --port <number>, or gateway.port in the configuration",
  ],
  EADDRNOTAVAIL: (host) => [
    `This machine has no address ${host}`,
    "Name one that it has: --host <address>, or gateway.host in the configuration",
  ],
  ENOTFOUND: (host) => [
    `The name ${host} stands for no address`,
    "Name an address of this machine: --host <address>, or gateway.host in the configuration",
  ],
};

/** Whether a gateway could listen where the configuration says, or does already. */
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
    const what = `The gateway of this folder listens at ${running.url} (process ${running.pid})`;
    return [finding("note", what, "No action is needed")];
  }
  try {
    checkBinding(host, expose);
    await tryListening(host, port);
    return [];
  } catch (error) {
    const told = await portError(error, gateway);
    if (!(told instanceof SkeinError)) throw told;
    return [finding("warning", told.message.slice(0, -told.remedy.length).trim(), told.remedy)];
  }
}

/** For a moment; nobody is let in. */
export function tryListening(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", reject).listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
