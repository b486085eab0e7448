import { isTransient } from "./contract.ts";

/** Delays between attempts. */
export interface Backoff {
  readonly minMs: number;
  readonly maxMs: number;
}

/** Returns a random delay between 50% and 100% of the exponential backoff. */
export function delayBefore(failed: number, { minMs, maxMs }: Backoff, random: () => number): number {
  const whole = Math.min(maxMs, minMs * 2 ** Math.min(failed, 30));
  return whole / 2 + (whole / 2) * random();
}

/** Clock, timers and randomness, injected for tests. */
export interface Timing {
  now(): number;
  random(): number;
  /** Returns a function that cancels the timer. */
  setTimer(ms: number, ring: () => void): () => void;
}

export const realTiming: Timing = {
  now: () => Date.now(),
  random: () => Math.random(),
  setTimer: (ms, ring) => {
    const timer = setTimeout(ring, ms);
    return () => clearTimeout(timer);
  },
};

/** Rejects with the signal's reason when the signal is aborted. */
export function sleep(timing: Timing, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancelTimer();
      reject(signal.reason);
    };
    const cancelTimer = timing.setTimer(ms, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

const patience = { minMs: 250, maxMs: 10_000 };

/**
 * Retries while the gateway returns a transient error, or while `mayPass` accepts the error. If the signal is aborted,
 * rejects with its reason.
 */
export async function retryWhileTransient<T>(
  timing: Timing,
  signal: AbortSignal | null,
  act: () => Promise<T>,
  mayPass: (error: unknown) => boolean = isTransient,
): Promise<T> {
  for (let failed = 0; ; failed++) {
    signal?.throwIfAborted();
    try {
      return await act();
    } catch (error) {
      signal?.throwIfAborted();
      if (!mayPass(error)) throw error;
      const delay = delayBefore(failed, patience, () => timing.random());
      await sleep(timing, Math.max(delay, retryAfter(error)), signal ?? new AbortController().signal);
    }
  }
}

/** Whether the request was rejected before it started. Such a request can safely be resent. */
export function isRateLimited(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === "rate_limited";
}

function retryAfter(error: unknown): number {
  const { retryAfterMs } = error as { readonly retryAfterMs?: unknown };
  return typeof retryAfterMs === "number" ? retryAfterMs : 0;
}
