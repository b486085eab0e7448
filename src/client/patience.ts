import type { Timing } from "./backoff.ts";
import { delayBefore, sleep } from "./backoff.ts";
import { isPassing } from "./call-error.ts";

const patience = { minMs: 250, maxMs: 10_000 };

/** Reads for as long as a gateway says that it may do better later. Rejects with the signal's reason when it is aborted. */
export async function patiently<T>(timing: Timing, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  for (let failed = 0; ; failed++) {
    try {
      return await read();
    } catch (error) {
      signal.throwIfAborted();
      if (!isPassing(error)) throw error;
      const delay = delayBefore(failed, patience, () => timing.random());
      await sleep(timing, Math.max(delay, error.retryAfterMs ?? 0), signal);
    }
  }
}
