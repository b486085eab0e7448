import type { RunStore } from "../../runs/contract.ts";

/** More than this nobody follows: a circle that is longer is ended by the time that a yield may take. */
const mostFollowed = 1000;

/**
 * The circle that a run would close by sleeping for these, from the run back to itself; `null`: none. Input that waits for
 * the run's own session is no part of one: whoever sleeps blocks nobody.
 */
export async function waitCircle(
  runs: Pick<RunStore, "get" | "waits">,
  runId: string,
  targets: readonly string[],
): Promise<readonly string[] | null> {
  const cameFrom = new Map<string, string>();
  const open = [...targets];
  for (const target of targets) cameFrom.set(target, runId);
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    if (next === runId) return wayTo(runId, cameFrom);
    if (cameFrom.size > mostFollowed) return null;
    const [run, waits] = [await runs.get(next), await runs.waits(next)];
    const isQueued = run?.state === "queued";
    for (const each of waits?.runIds ?? []) {
      if (cameFrom.has(each) || (isQueued && each === runId)) continue;
      cameFrom.set(each, next);
      open.push(each);
    }
  }
  return null;
}

function wayTo(runId: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const way = [runId];
  for (let at = cameFrom.get(runId); at !== undefined && at !== runId; at = cameFrom.get(at)) way.unshift(at);
  return [runId, ...way];
}
