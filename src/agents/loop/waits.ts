import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";

/** Resolves after so long; rejects with the signal's reason as soon as it is aborted. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** What a loop takes from outside, so that tests own it. */
export interface LoopDeps {
  readonly clock: Clock;
  /** From 0 up to, but not, 1. */
  readonly random: () => number;
  readonly sleep: Sleep;
  /** Masks secrets in what a provider said: some repeat the key that they were sent. */
  readonly redact: (text: string) => string;
}

/** The real ones, except for those given. */
export function loopDeps(given: Partial<LoopDeps> = {}): LoopDeps {
  return { clock: systemClock, random: Math.random, sleep: realSleep, redact: (text) => text, ...given };
}

export const realSleep: Sleep = (ms, signal) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const waited = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return unlessAborted(waited, signal).finally(() => clearTimeout(timer));
};

/** What a promise gives, unless the signal is aborted first: then nobody waits for it any longer. */
export function unlessAborted<T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const leave = () => reject(signal.reason);
    const settle = (settled: () => void) => {
      signal.removeEventListener("abort", leave);
      settled();
    };
    promise.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
}
