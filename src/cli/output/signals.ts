import { constants } from "node:os";

const ending = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGABRT"] as const;
const listeners: (() => void)[] = [];

/** Makes a signal an exit like any other, so that what is to be done at the end is done: locks are given back. */
export function exitOnSignals(): void {
  for (const signal of ending) {
    process.on(signal, () => {
      const listener = signal === "SIGINT" ? listeners.at(-1) : undefined;
      if (listener === undefined) process.exit(128 + constants.signals[signal]);
      listener();
    });
  }
}

/** Tells somebody of Ctrl-C instead of ending the process by it. Returns a function that ends this. */
export function onInterrupt(listener: () => void): () => void {
  listeners.push(listener);
  return () => {
    const at = listeners.lastIndexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  };
}
