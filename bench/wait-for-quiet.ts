import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

/** A result is saved only from a machine that has little else to do, or with a note that it was not. */
export const quietLoad = 2;
const longestMs = 10 * 60_000;
const stepMs = 5000;

export interface LoadBefore {
  /** The load average over the last minute. */
  readonly load: number;
  readonly waitedSeconds: number;
}

/** The load average now, without waiting. */
export function currentLoad(): LoadBefore {
  return { load: Number((loadavg()[0] ?? 0).toFixed(1)), waitedSeconds: 0 };
}

/** Waits until the load average is below the limit, at most ten minutes. */
export async function waitForQuiet(say: (text: string) => void): Promise<LoadBefore> {
  const started = performance.now();
  const waited = () => performance.now() - started;
  if (currentLoad().load >= quietLoad)
    say(`waiting for a load average below ${quietLoad}, at most ${longestMs / 60_000} minutes`);
  while (currentLoad().load >= quietLoad && waited() < longestMs) await sleep(stepMs);
  const before = { ...currentLoad(), waitedSeconds: Math.round(waited() / 1000) };
  if (before.load >= quietLoad) say(`the load average is still ${before.load}; measuring anyway`);
  return before;
}
