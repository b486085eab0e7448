import { SkeinError } from "../../core/errors.ts";
import type { ServerSettings } from "../../gateway/contract.ts";

/** Why it cannot listen there, with what to do; everything else as it is. */
export function portError(error: unknown, { host, port }: Pick<ServerSettings, "host" | "port">): unknown {
  // The server may have told it in words of its own already.
  const system = error instanceof SkeinError ? error.cause : error;
  const reason = reasons[(system as { readonly code?: string } | undefined)?.code ?? ""];
  if (reason === undefined) return error;
  const [problem, advice] = reason(host, port);
  return new SkeinError("unavailable", { problem, advice }, { cause: system });
}

/** Whether somebody listens there already, as the system said it or as the server did. */
export function isTaken(error: unknown): boolean {
  const { code, cause } = error as { readonly code?: string; readonly cause?: { readonly code?: string } };
  return code === "EADDRINUSE" || cause?.code === "EADDRINUSE";
}

type Reason = (host: string, port: number) => readonly [problem: string, advice: string];

const reasons: Readonly<Record<string, Reason>> = {
  EADDRINUSE: (host, port) => [
    `Port ${port} at ${host} is taken by another program`,
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
