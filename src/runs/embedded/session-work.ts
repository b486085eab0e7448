import type { Outcome, RunState, SessionWork } from "../contract.ts";
import type { Books } from "./books.ts";
import { jsonOrNull, numberOrNull } from "./rows.ts";

type Row = Readonly<Record<string, unknown>>;

/**
 * What goes on in sessions, by two questions for all of them together: a list asks for a whole page. Notes and other silent
 * input are no work.
 */
export function workOf(books: Books, uids: readonly string[]): Map<string, SessionWork> {
  const page = JSON.stringify([...new Set(uids)]);
  const open = Map.groupBy(books.all(openRuns, page), ({ uid }) => String(uid));
  const bounds = new Map(books.all(firstAndLast, page).map((row) => [String(row.uid), row]));
  return new Map(uids.map((uid) => [uid, workIn(open.get(uid) ?? [], bounds.get(uid))]));
}

/** `CROSS JOIN`: from the page to its runs, and not through all runs that are open for each of the page. */
const openRuns = `SELECT runs.uid, run_id, state, kept_for, started_at
  FROM json_each(?) AS page CROSS JOIN runs INDEXED BY runs_open ON runs.uid = page.value
  WHERE ended_at IS NULL AND state <> 'merged' AND silent = 0 ORDER BY rank, seq`;

/** When the first run began, and the last that ended: each is one look into an index, however many there were. */
const firstAndLast = `SELECT page.value AS uid,
    (SELECT started_at FROM runs INDEXED BY runs_session
     WHERE uid = page.value AND silent = 0 AND started_at IS NOT NULL ORDER BY seq LIMIT 1) AS first_at,
    last.state, last.ended_at, CASE last.state WHEN 'merged' THEN last.outcome END AS outcome
  FROM json_each(?) AS page LEFT JOIN runs AS last ON last.seq =
    (SELECT seq FROM runs INDEXED BY runs_last
     WHERE uid = page.value AND ended_at IS NOT NULL AND silent = 0 ORDER BY ended_at DESC, seq DESC LIMIT 1)`;

function workIn(open: readonly Row[], bounds: Row | undefined): SessionWork {
  const { current, queued } = turnsIn(open);
  return {
    status: current === null ? statusOf(bounds) : shown[current.state],
    startedAt: numberOrNull(bounds?.first_at),
    endedAt: current === null ? numberOrNull(bounds?.ended_at) : null,
    runId: current?.runId ?? null,
    queued,
  };
}

type OpenState = Extract<RunState, "queued" | "running" | "waiting" | "sleeping">;

const shown = {
  queued: "queued",
  running: "running",
  waiting: "waiting",
  sleeping: "waiting",
} as const satisfies Record<OpenState, SessionWork["status"]>;

const byWeight: readonly OpenState[] = ["running", "waiting", "sleeping", "queued"];

function turnsIn(open: readonly Row[]): {
  readonly current: { readonly runId: string; readonly state: OpenState } | null;
  readonly queued: number;
} {
  // What is kept for a run is a part of that one.
  const turns = open.filter(({ kept_for }) => kept_for === null);
  const state = byWeight.find((each) => turns.some((row) => row.state === each));
  const head = turns.find((row) => row.state === state);
  const queued = turns.filter((row) => row.state === "queued" && row.started_at === null).length;
  const current = state === undefined || head === undefined ? null : { runId: String(head.run_id), state };
  return { current, queued };
}

/** How the last run ended; merged input as the turn that took it. */
function statusOf(last: Row | undefined): SessionWork["status"] {
  const state = last?.state === "merged" ? jsonOrNull<Outcome>(last.outcome)?.state : last?.state;
  return state === "error" || state === "timeout" || state === "aborted" ? state : "idle";
}
