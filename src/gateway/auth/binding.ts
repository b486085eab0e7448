import { SkeinError } from "../../core/errors.ts";
import { isLoopback } from "../limits/addresses.ts";

/** Refuses to listen where others reach it, unless that was asked for in so many words. */
export function checkBinding(host: string, isExposed: boolean): void {
  if (isExposed || host.toLowerCase() === "localhost" || isLoopback(host)) return;
  throw new SkeinError("forbidden", {
    problem: `The gateway would be reached from other machines at ${host}`,
    advice:
      "Start it with --expose, or with gateway.expose: true, if that is meant; else listen at 127.0.0.1",
  });
}
