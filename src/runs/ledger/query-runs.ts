import { present } from "../../core/present.ts";
import type { Script, SqlValue } from "../../core/script.ts";
import type { Outcome, Run, RunQuery, RunState, RunWaits, SessionWork } from "../contract.ts";
import { ranks } from "../lanes.ts";
import { isEnded, mostLost } from "../states.ts";
import { findMissingHere } from "./claim-eligibility.ts";
import type { RunTransaction } from "./run-ledger.ts";
import { jsonOrNull, limitList, numberOrNull, publicRun } from "./run-ledger.ts";

type Row = Readonly<Record<string, unknown>>;

export function* listPending(tx: RunTransaction, sessionUid: string): Script<Run[]> {
  return (yield* tx.rows("uid = ? AND state = 'queued' AND written = 0 ORDER BY seq", sessionUid)).map(
    publicRun,
  );
}

/** Covers every turn that can take place while one run is asleep. */
const mostTurns = 2000;

export function* listTurnInputs(
  tx: RunTransaction,
  sessionUid: string,
  since: number,
): Script<{ readonly entryId: string; readonly runId: string }[]> {
  const sql = `SELECT entry_id, coalesce(merged_into, run_id) AS run_id FROM runs
    WHERE uid = ? AND silent = 0 AND (ended_at IS NULL OR ended_at >= ?) ORDER BY seq LIMIT ?`;
  const rows = yield* tx.all(sql, sessionUid, since, mostTurns);
  return rows.map(({ entry_id, run_id }) => ({ entryId: String(entry_id), runId: String(run_id) }));
}

/** Returns the users with open runs. */
export function* listOpenUsers(tx: RunTransaction): Script<(string | null)[]> {
  const rows = yield* tx.all("SELECT DISTINCT user FROM runs WHERE ended_at IS NULL");
  return rows.map(({ user }) => (user === "" ? null : String(user)));
}

export function* listRuns(tx: RunTransaction, query: RunQuery, userId?: string | null): Script<Run[]> {
  const limit = limitList(query.limit);
  if (query.waitsForApp !== true) return yield* readPage(tx, query, userId, limit);
  // Filtered here rather than in SQL, because whether an app's run can be claimed depends on this process.
  const pageSize = Math.max(limit, limitList());
  const waiting: Run[] = [];
  for (let before = query.before; waiting.length < limit; ) {
    const page = yield* readPage(tx, { ...query, ...present({ before }) }, userId, pageSize);
    waiting.push(...page.filter((run) => findMissingHere(tx, run) !== null));
    if (page.length < pageSize) break;
    before = page.at(-1)?.seq;
  }
  return waiting.slice(0, limit);
}

function* readPage(
  tx: RunTransaction,
  query: RunQuery,
  userId: string | null | undefined,
  limit: number,
): Script<Run[]> {
  const { states, sessionUid, rootId, startedBy, sourceKey, before } = query;
  const where = ["true"];
  const values: SqlValue[] = [];
  const add = (condition: string, ...more: readonly SqlValue[]) => {
    where.push(condition);
    values.push(...more);
  };
  if (userId !== undefined) add("user = ?", userId ?? "");
  if (sessionUid !== undefined) add("uid = ?", sessionUid);
  if (rootId !== undefined) add("root = ?", rootId);
  if (startedBy !== undefined) add("started_by = ?", startedBy);
  if (sourceKey !== undefined) add("source = ?", sourceKey);
  if (before !== undefined) add("seq < ?", before);
  if (query.waitsForApp === true) add("state = 'queued' AND app <> ''");
  if (query.lost === true) add("lost > ? AND retried_as IS NULL AND state = 'error'", mostLost);
  if (states !== undefined) add(`state IN (${states.map(() => "?").join(", ")})`, ...states);
  // Redundant, but SQLite does not use the partial index on open runs without this condition.
  if (states?.every((state) => !isEnded(state)) === true) add("ended_at IS NULL");
  const sql = `${where.join(" AND ")} ORDER BY seq DESC LIMIT ?`;
  return (yield* tx.rows(sql, ...values, limit)).map(publicRun);
}

export function* countRunsByUser(
  tx: RunTransaction,
  userIds: readonly (string | null)[],
): Script<ReadonlyMap<string, { readonly runs: number; readonly open: number }>> {
  const rows = yield* tx.all(
    `SELECT user, count(*) AS runs, count(*) FILTER (WHERE ended_at IS NULL) AS open FROM runs
     WHERE user IN (SELECT value FROM json_each(?)) GROUP BY user`,
    JSON.stringify(userIds.map((userId) => userId ?? "")),
  );
  return new Map(
    rows.map(({ user, runs, open }) => [String(user), { runs: Number(runs), open: Number(open) }]),
  );
}

/** Returns the work of many sessions in two queries, for one page of a list. Ignores silent input such as notes. */
export function* readSessionWork(
  tx: RunTransaction,
  uids: readonly string[],
): Script<Map<string, SessionWork>> {
  const page = JSON.stringify([...new Set(uids)]);
  const open = Map.groupBy(yield* tx.all(openRuns, page), ({ uid }) => String(uid));
  const bounds = new Map((yield* tx.all(firstAndLast, page)).map((row) => [String(row.uid), row]));
  const approvals = yield* countApprovals(tx);
  return new Map(
    uids.map((uid) => [uid, describeWork(open.get(uid) ?? [], bounds.get(uid), approvals.get(uid) ?? 0)]),
  );
}

/** Counts pending approvals by session. There are few of them, because a person must answer each one. */
function* countApprovals(tx: RunTransaction): Script<ReadonlyMap<string, number>> {
  const sql = `SELECT uid, count(*) AS count FROM approvals CROSS JOIN runs USING (run_id)
    WHERE answer IS NULL AND ended_at IS NULL GROUP BY uid`;
  return new Map((yield* tx.all(sql)).map(({ uid, count }) => [String(uid), Number(count)]));
}

/**
 * Returns the work of sessions that are not idle. Uses two index scans, one over open runs and one over failed runs
 * from the last 30 days.
 */
export function* readUnsettledWork(
  tx: RunTransaction,
  userId?: string | null,
): Script<Map<string, SessionWork>> {
  const isTheirs = userId === undefined ? "" : "AND user = ?1";
  const sql = `SELECT uid FROM runs WHERE ended_at IS NULL ${isTheirs}
    UNION SELECT uid FROM runs WHERE state IN ('error', 'timeout') AND silent = 0 ${isTheirs}`;
  const rows = yield* tx.all(sql, ...(userId === undefined ? [] : [userId ?? ""]));
  const works = yield* readSessionWork(
    tx,
    rows.map(({ uid }) => String(uid)),
  );
  for (const [uid, { status }] of works) if (status === "idle" || status === "aborted") works.delete(uid);
  return works;
}

/** `CROSS JOIN` makes SQLite start from the page and look up its runs instead of scanning all open runs. */
const openRuns = `SELECT runs.uid, run_id, state, kept_for, started_at
  FROM json_each(?) AS page CROSS JOIN runs INDEXED BY runs_open ON runs.uid = page.value
  WHERE ended_at IS NULL AND state <> 'merged' AND silent = 0 ORDER BY rank, seq`;

/**
 * Selects the start of the first run and the last run that ended. Each is one index lookup, regardless of the number of
 * runs.
 */
const firstAndLast = `SELECT page.value AS uid,
    (SELECT started_at FROM runs INDEXED BY runs_session
     WHERE uid = page.value AND silent = 0 AND started_at IS NOT NULL ORDER BY seq LIMIT 1) AS first_at,
    last.state, last.ended_at, CASE last.state WHEN 'merged' THEN last.outcome END AS outcome
  FROM json_each(?) AS page LEFT JOIN runs AS last ON last.seq =
    (SELECT seq FROM runs INDEXED BY runs_last
     WHERE uid = page.value AND ended_at IS NOT NULL AND silent = 0 ORDER BY ended_at DESC, seq DESC LIMIT 1)`;

function describeWork(open: readonly Row[], bounds: Row | undefined, approvals: number): SessionWork {
  const { current, queued } = turnsIn(open);
  return {
    status: current === null ? statusOf(bounds) : shown[current.state],
    startedAt: numberOrNull(bounds?.first_at),
    endedAt: current === null ? numberOrNull(bounds?.ended_at) : null,
    runId: current?.runId ?? null,
    queued,
    approvals,
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
  // Input kept for a run does not start a separate turn.
  const turns = open.filter(({ kept_for }) => kept_for === null);
  const state = byWeight.find((each) => turns.some((row) => row.state === each));
  const head = turns.find((row) => row.state === state);
  const queued = turns.filter((row) => row.state === "queued" && row.started_at === null).length;
  const current = state === undefined || head === undefined ? null : { runId: String(head.run_id), state };
  return { current, queued };
}

/** Returns how the last run ended. Merged input ends in the same way as the turn it joined. */
function statusOf(last: Row | undefined): SessionWork["status"] {
  const state = last?.state === "merged" ? jsonOrNull<Outcome>(last.outcome)?.state : last?.state;
  return state === "error" || state === "timeout" || state === "aborted" ? state : "idle";
}

export function* findWaits(tx: RunTransaction, runId: string): Script<RunWaits | null> {
  return (yield* readWaits(tx, [runId])).get(runId) ?? null;
}

/** Returns what runs are waiting for. Uses four queries regardless of the number of runs. Unknown runs are omitted. */
export function* readWaits(tx: RunTransaction, runIds: readonly string[]): Script<Map<string, RunWaits>> {
  const rows = yield* tx.all(
    `SELECT run_id, uid, state, wake_at, merged_into, kept_for, app, owner FROM runs ${among("run_id")}`,
    JSON.stringify(runIds),
  );
  const idsIn = (name: string, ...states: readonly RunState[]) =>
    rows.filter(({ state }) => states.includes(state as RunState)).map((row) => String(row[name]));
  const busy = yield* busyIn(tx, idsIn("uid", "queued"));
  const edges = yield* edgesFrom(tx, idsIn("run_id", "waiting", "sleeping"));
  const apps = yield* appsWaitedFor(tx, rows);
  return new Map(
    rows.map((row) => {
      const waits = {
        runIds: waitedFor(row, busy, edges),
        wakeAt: row.state === "sleeping" ? numberOrNull(row.wake_at) : null,
        ...(apps.get(String(row.run_id)) ?? { app: null, missingTools: [] }),
        ...(row.owner !== null && tx.options.isGone(String(row.owner)) ? { isOwnerGone: true } : {}),
      };
      return [String(row.run_id), waits];
    }),
  );
}

/**
 * For each queued run of an app that this process cannot claim, returns the app and the tools that are missing here.
 */
function* appsWaitedFor(
  tx: RunTransaction,
  rows: readonly Record<string, unknown>[],
): Script<ReadonlyMap<string, Pick<RunWaits, "app" | "missingTools">>> {
  const waiting = rows.filter((row) => row.state === "queued" && row.app !== "" && row.kept_for === null);
  if (waiting.length === 0) return new Map();
  const ids = JSON.stringify(waiting.map(({ run_id }) => run_id));
  const runs = yield* tx.rows("run_id IN (SELECT value FROM json_each(?))", ids);
  return new Map(
    runs.flatMap((run) => {
      const lacking = findMissingHere(tx, run);
      return lacking === null ? [] : [[run.runId, { app: lacking.app, missingTools: lacking.tools }]];
    }),
  );
}

type Edges = ReadonlyMap<string, readonly string[]>;

/**
 * Returns the runs that a run is waiting for. A queued run waits for the session's active run and for any turn in the
 * session that has lost its owner.
 */
function waitedFor(row: Record<string, unknown>, busy: Edges, edges: Edges): readonly string[] {
  switch (row.state as RunState) {
    case "merged":
      return [String(row.merged_into)];
    case "queued": {
      const before = (busy.get(String(row.uid)) ?? []).filter((id) => id !== row.run_id);
      return row.kept_for === null ? before : [...before, String(row.kept_for)];
    }
    default:
      return edges.get(String(row.run_id)) ?? [];
  }
}

function* busyIn(tx: RunTransaction, uids: readonly string[]): Script<Edges> {
  const sql = `SELECT uid AS at, run_id AS id FROM runs ${among("uid")} AND state IN ('running', 'waiting')
    UNION ALL SELECT uid, run_id FROM runs ${among("uid")} AND state = 'queued' AND rank = ${ranks.recovered}`;
  return yield* pairs(tx, sql, uids);
}

function* edgesFrom(tx: RunTransaction, runIds: readonly string[]): Script<Edges> {
  const sql = `SELECT from_run AS at, to_run AS id FROM run_waits ${among("from_run")} AND arrived = 0`;
  return yield* pairs(tx, sql, runIds);
}

function* pairs(tx: RunTransaction, sql: string, names: readonly string[]): Script<Edges> {
  if (names.length === 0) return new Map();
  const found = Map.groupBy(yield* tx.all(sql, JSON.stringify(names)), ({ at }) => String(at));
  return new Map([...found].map(([at, rows]) => [at, rows.map(({ id }) => String(id))]));
}

/** Uses the same SQL, and thus the same prepared statement, for any number of names. */
function among(column: string): string {
  return `WHERE ${column} IN (SELECT value FROM json_each(?1))`;
}
