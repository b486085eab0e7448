import type { Outcome, RunState, SessionWork } from "../contract.ts";
import type { Books } from "./books.ts";
import { jsonOrNull, numberOrNull } from "./rows.ts";

/** What goes on in a session, by a few looks into indexes. Notes and other silent input are no work. */
export function workOf(books: Books, uid: string): SessionWork {
  const { current, queued } = openIn(books, uid);
  const first = books.get(
    "SELECT started_at FROM runs WHERE uid = ? AND silent = 0 AND started_at IS NOT NULL ORDER BY seq LIMIT 1",
    uid,
  );
  const last = books.get(
    `SELECT state, ended_at, CASE state WHEN 'merged' THEN outcome END AS outcome FROM runs INDEXED BY runs_last
     WHERE uid = ? AND ended_at IS NOT NULL AND silent = 0 ORDER BY ended_at DESC, seq DESC LIMIT 1`,
    uid,
  );
  return {
    status: current === null ? statusOf(last) : shown[current.state],
    startedAt: numberOrNull(first?.started_at),
    endedAt: current === null ? numberOrNull(last?.ended_at) : null,
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

function openIn(
  books: Books,
  uid: string,
): {
  readonly current: { readonly runId: string; readonly state: OpenState } | null;
  readonly queued: number;
} {
  const open = books.all(
    `SELECT run_id, state, kept_for, started_at FROM runs INDEXED BY runs_open
     WHERE uid = ? AND ended_at IS NULL AND state <> 'merged' AND silent = 0 ORDER BY rank, seq`,
    uid,
  );
  const state = byWeight.find((each) => open.some((row) => row.state === each && isTurn(row)));
  const head = open.find((row) => row.state === state && isTurn(row));
  const queued = open.filter(
    (row) => row.state === "queued" && row.started_at === null && isTurn(row),
  ).length;
  const current = state === undefined || head === undefined ? null : { runId: String(head.run_id), state };
  return { current, queued };
}

/** What is kept for a run is a part of that one. */
function isTurn({ kept_for }: Record<string, unknown>): boolean {
  return kept_for === null;
}

/** How the last run ended; merged input as the turn that took it. */
function statusOf(last: Record<string, unknown> | undefined): SessionWork["status"] {
  const state = last?.state === "merged" ? jsonOrNull<Outcome>(last.outcome)?.state : last?.state;
  return state === "error" || state === "timeout" || state === "aborted" ? state : "idle";
}
