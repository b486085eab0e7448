import { constants } from "node:os";

const ending = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGABRT"] as const;

/** Makes a signal an exit like any other, so that what is to be done at the end is done: locks are given back. */
export function exitOnSignals(): void {
  for (const signal of ending) process.on(signal, () => process.exit(128 + constants.signals[signal]));
}
