import type { Child, Run } from "../../runs/contract.ts";
import { openStates } from "../../runs/states.ts";
import type { App } from "../../sessions/app.ts";
import type { Caller } from "../../sessions/session-access.ts";
import { isOpen } from "./awaited.ts";
import { familyOf } from "./family.ts";

export interface Killed {
  /** Runs that were aborted, in all. */
  readonly runs: number;
  /** Sessions below the target among whose runs they were. */
  readonly descendants: number;
}

/** How long a round waits for what it aborted to end. */
const patienceMs = 5000;
/** The end of each is told to the one above, whose turn about it is part of what is killed. */
const mostRounds = 8;

/**
 * Aborts all that is open in a child and in everything below it, the deepest first, and again what that set off on its way
 * up, until nothing is open. What does not end in time ends later; it is counted all the same.
 */
export async function killFamily(child: Child, call: Caller, app: App): Promise<Killed> {
  const { userId } = call;
  const aborted = new Set<string>();
  const below = new Set<string>();
  for (let round = 0; round < mostRounds; round++) {
    const family = await familyOf(app.runs, userId, child.run.session.key);
    const deepestFirst = family.toSorted((a, b) => b.depth - a.depth).map((member) => member.child);
    const fresh: string[] = [];
    for (const each of [...deepestFirst, child]) {
      for (const run of await openRuns(each, app)) {
        if (aborted.has(run.runId)) continue;
        await app.runs.abort(run.runId, "killed by subagents");
        aborted.add(run.runId);
        fresh.push(run.runId);
        if (each !== child) below.add(each.run.session.uid);
      }
    }
    if (fresh.length === 0) break;
    await untilAllEnded(fresh, call, app);
  }
  return { runs: aborted.size, descendants: below.size };
}

async function openRuns({ run }: Child, app: App): Promise<readonly Run[]> {
  const { uid, userId } = run.session;
  const open = await app.runs.list({ sessionUid: uid, states: openStates, limit: 1000 }, userId);
  return open.filter(isOpen);
}

async function untilAllEnded(runIds: readonly string[], { signal }: Caller, app: App): Promise<void> {
  const patience = AbortSignal.timeout(patienceMs);
  const both = AbortSignal.any([signal, patience]);
  const waits = await Promise.allSettled(runIds.map((runId) => app.watcher.untilEnded(runId, both)));
  signal.throwIfAborted();
  const failed = waits.find((wait) => wait.status === "rejected");
  if (failed !== undefined && !patience.aborted) throw failed.reason;
}
