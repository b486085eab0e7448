import * as s from "../core/schema.ts";
import { escapeToLine } from "../core/text.ts";
import { outputs } from "../protocol/tool-results.ts";
import type { Run, RunStore } from "../runs/contract.ts";
import { isOpenRun } from "../runs/states.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import type { SessionTool, ToolAnswer, ToolResult } from "./session-tool.ts";

const parameters = s.closed({
  message: s.optional(
    s.string({ description: 'The reason for ending the turn. Defaults to "Turn yielded."' }),
  ),
  waitFor: s.optional(
    s.array(s.string({ maxLength: 64 }), {
      description: "IDs of the runs to wait for. Defaults to every open run that this run has started.",
      maxItems: 100,
    }),
  ),
});

const defaultMessage = "Turn yielded.";

/** Ends the turn until other runs have ended. The run sleeps durably because the result is part of the session. */
export const sessionsYield: SessionTool = {
  name: "sessions_yield",
  label: "Yield",
  description:
    "End your current turn. Use after spawning subagents to receive their results as the next message.",
  parameters,
  output: outputs.sessionsYield,
  isLast: true,
  execute: async (args, call, app) => {
    if (call.session === null) return refusalAnswer("no_session", "No session context");
    if (call.run === null) return refusalAnswer("yield_not_supported", "Yield not supported in this context");
    const message = typeof args.message === "string" ? args.message : defaultMessage;
    const named = Array.isArray(args.waitFor) ? [...new Set((args.waitFor as string[]).map(String))] : [];
    const found = named.length === 0 ? null : await findNamedRuns(named, call, app);
    if (found !== null && "unknown" in found) return unknownRuns(found.unknown);
    const waitingFor = await resolveTargets(found?.runs ?? null, call.run, app);
    if (waitingFor.length === 0) return nothingToWaitFor(named.length > 0);
    const cycle = await findWaitCycle(app.runs, call.run.runId, waitingFor);
    if (cycle !== null) return waitCycleRefusal(cycle);
    return { result: { status: "yielded", message, waitingFor }, sleep: { waitFor: waitingFor } };
  },
};

function resolveTargets(named: readonly Run[] | null, run: Run, app: App): Promise<readonly string[]> {
  return named === null ? listAwaitedChildren(run, app) : filterAwaited(named, run, app);
}

function unknownRuns(ids: readonly string[]): ToolAnswer {
  const which = `${ids.length === 1 ? "Run" : "Runs"} not found: ${ids.map((id) => escapeToLine(id)).join(", ")}`;
  return refusalAnswer("not_found", `${which} (use a runId returned by sessions_send or sessions_spawn)`);
}

function nothingToWaitFor(isNamed: boolean): ToolAnswer {
  const what = isNamed
    ? "the runs in waitFor have ended and have already been reported"
    : "you have no open runs";
  return refusalAnswer("nothing_to_wait_for", `There is nothing to wait for: ${what}. Continue your turn.`);
}

function waitCycleRefusal(cycle: readonly string[]): ToolAnswer {
  const error = `This wait would never end: ${cycle.join(" waits for ")}. Continue your turn, or list other runs in waitFor.`;
  return refusalAnswer("wait_cycle", error, { cycle });
}

function refusalAnswer(code: string, error: string, more: ToolResult = {}): ToolAnswer {
  return { result: { status: "error", code, error, ...more } };
}

const maxStarted = 1000;

/** Lists the runs that a run has started and that are open or have an unread reply, oldest first. */
async function listAwaitedChildren(run: Run, app: App): Promise<readonly string[]> {
  const started = await app.runs.list({ startedBy: run.runId, limit: maxStarted }, run.session.userId);
  // A custom store might ignore the filter.
  const own = started.filter(({ startedBy }) => startedBy === run.runId);
  return filterAwaited(own.toReversed(), run, app);
}

/** Returns the runs that are open or whose reply is in the inbox. */
async function filterAwaited(runs: readonly Run[], by: Run, app: App): Promise<readonly string[]> {
  const unread = (await app.runs.pending(by.session.uid)).filter(({ keptFor }) => keptFor === null);
  const senders = new Set(unread.map(({ provenance }) => provenance?.sourceSessionKey));
  return runs.filter((run) => isOpenRun(run) || senders.has(run.session.key)).map(({ runId }) => runId);
}

type NamedRuns = { readonly runs: readonly Run[] } | { readonly unknown: readonly string[] };

/**
 * Finds runs by ID. A caller can find a run that it did not start only if it is allowed to see the status of the run's
 * session.
 */
async function findNamedRuns(ids: readonly string[], call: Caller, app: App): Promise<NamedRuns> {
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

/** The maximum length of a cycle to detect. A longer cycle is broken when the yield times out. */
const maxFollowed = 1000;

/**
 * Returns the cycle that would form if a run slept until these runs end, or `null` if there is none. Input waiting for
 * the run's own session is ignored, because a sleeping run does not block other runs.
 */
async function findWaitCycle(
  runs: Pick<RunStore, "get" | "waits">,
  runId: string,
  targets: readonly string[],
): Promise<readonly string[] | null> {
  const cameFrom = new Map<string, string>();
  const open = [...targets];
  for (const target of targets) cameFrom.set(target, runId);
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    if (next === runId) return pathTo(runId, cameFrom);
    if (cameFrom.size > maxFollowed) return null;
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

function pathTo(runId: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const way = [runId];
  for (let at = cameFrom.get(runId); at !== undefined && at !== runId; at = cameFrom.get(at)) way.unshift(at);
  return [runId, ...way];
}
