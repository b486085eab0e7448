import type { Run } from "../../runs/contract.ts";
import { isEnded } from "../../runs/states.ts";
import type { App } from "../../sessions/app.ts";
import type { Caller } from "../../sessions/session-access.ts";

/** What a run may sleep for. */

/** Input that was merged into a turn is open as long as that turn is. */
export function isOpen(run: Run): boolean {
  return run.state === "merged" ? run.outcome === null : !isEnded(run.state);
}

const mostStarted = 1000;

/** All that a run started and that is open or has arrived unread, oldest first. */
export async function startedAndOpen(run: Run, app: App): Promise<readonly string[]> {
  const started = await app.runs.list({ startedBy: run.runId, limit: mostStarted }, run.session.userId);
  // As the store has it, whether or not it looked by who started it.
  const own = started.filter(({ startedBy }) => startedBy === run.runId);
  return awaitedOf(own.toReversed(), run, app);
}

/** Of these runs, those that are open or whose word waits in the inbox. */
export async function awaitedOf(runs: readonly Run[], by: Run, app: App): Promise<readonly string[]> {
  const unread = (await app.runs.pending(by.session.uid)).filter(({ keptFor }) => keptFor === null);
  const senders = new Set(unread.map(({ provenance }) => provenance?.sourceSessionKey));
  return runs.filter((run) => isOpen(run) || senders.has(run.session.key)).map(({ runId }) => runId);
}

export type Named = { readonly runs: readonly Run[] } | { readonly unknown: readonly string[] };

/** Runs by their ids. One that the caller did not start is there for it only if it may ask for its session's status. */
export async function namedRuns(ids: readonly string[], call: Caller, app: App): Promise<Named> {
  const found = await Promise.all(ids.map((id) => findRun(id, call, app)));
  const unknown = ids.filter((_, index) => found[index] === null);
  return unknown.length > 0 ? { unknown } : { runs: found.filter((run) => run !== null) };
}

async function findRun(runId: string, call: Caller, app: App): Promise<Run | null> {
  const run = await app.runs.get(runId, call.userId);
  if (run === null || run.startedBy === call.run?.runId || run.session.uid === call.session?.uid) return run;
  const found = await app.access.find(call, run.session.key, "status");
  return "session" in found ? run : null;
}
