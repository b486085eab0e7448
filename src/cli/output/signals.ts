import { constants } from "node:os";

const ending = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGABRT"] as const;
const listeners: (() => void)[] = [];
const stoppers: ((signal: string) => void)[] = [];

/** Makes a signal an exit like any other, so that what is to be done at the end is done: locks are given back. */
export function exitOnSignals(): void {
  for (const signal of ending) {
    process.on(signal, () => {
      const isAsked = signal === "SIGINT" || signal === "SIGTERM";
      const stopper = isAsked ? stoppers.at(-1) : undefined;
      const listener = signal === "SIGINT" ? listeners.at(-1) : undefined;
      if (stopper !== undefined) stopper(signal);
      else if (listener !== undefined) listener();
      else process.exit(128 + constants.signals[signal]);
    });
  }
}

/** Tells somebody that the process is asked to stop, by Ctrl-C or SIGTERM, instead of ending it. */
export function onStopAsked(stopper: (signal: string) => void): () => void {
  stoppers.push(stopper);
  return () => void stoppers.splice(stoppers.lastIndexOf(stopper), 1);
}

/** Tells somebody of Ctrl-C instead of ending the process by it. Returns a function that ends this. */
export function onInterrupt(listener: () => void): () => void {
  listeners.push(listener);
  return () => {
    const at = listeners.lastIndexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  };
}
