import type { Timing } from "./backoff.ts";
import { delayBefore, sleep } from "./backoff.ts";
import { isPassing } from "./call-error.ts";

const patience = { minMs: 250, maxMs: 10_000 };

/**
 * Does it for as long as a gateway says that it may do better later. Rejects with the signal's reason when it is aborted.
 * `mayPass`: which refusals are passing ones; by default all that reading may come again after.
 */
export async function patiently<T>(
  timing: Timing,
  signal: AbortSignal | null,
  act: () => Promise<T>,
  mayPass: (error: unknown) => boolean = isPassing,
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

/** It was not even begun, so that whatever it changes may be asked for once more. */
export function isNotLetIn(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === "rate_limited";
}

function retryAfter(error: unknown): number {
  const { retryAfterMs } = error as { readonly retryAfterMs?: unknown };
  return typeof retryAfterMs === "number" ? retryAfterMs : 0;
}
