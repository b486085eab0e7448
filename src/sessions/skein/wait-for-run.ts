import type { Run } from "../../runs/contract.ts";
import type { RunWatcher } from "./run-watcher.ts";

export interface WaitOptions {
  /** 0: how it stands now. Left out: as long as it takes. At most 24 days. */
  readonly timeoutMs?: number;
  /** Nobody waits any more. */
  readonly signal?: AbortSignal;
}

/**
 * Waits for the end of a run; `null`: it had not come when the time was over, or nobody waited any more. Nothing of the wait is
 * left behind, neither a timer nor a listener.
 */
export async function endedWithin(
  watcher: Pick<RunWatcher, "untilEnded">,
  runId: string,
  { timeoutMs, signal }: WaitOptions,
): Promise<Run | null> {
  if (timeoutMs === 0 || signal?.aborted === true) return null;
  const over = new AbortController();
  const leave = () => over.abort();
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs);
  signal?.addEventListener("abort", leave, { once: true });
  try {
    return await watcher.untilEnded(runId, over.signal);
  } catch (error) {
    if (error === over.signal.reason) return null;
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}
