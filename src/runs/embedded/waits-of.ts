import type { RunState, RunWaits } from "../contract.ts";
import { ranks } from "../lanes.ts";
import type { Books } from "./books.ts";
import { lackingHere } from "./claimants.ts";
import { numberOrNull } from "./rows.ts";

/** What runs wait for now, by four looks however many they are. Those that are unknown are left out. */
export function waitsOf(books: Books, runIds: readonly string[]): Map<string, RunWaits> {
  const rows = books.all(
    `SELECT run_id, uid, state, wake_at, merged_into, kept_for, app, owner FROM runs ${among("run_id")}`,
    JSON.stringify(runIds),
  );
  const idsIn = (name: string, ...states: readonly RunState[]) =>
    rows.filter(({ state }) => states.includes(state as RunState)).map((row) => String(row[name]));
  const busy = busyIn(books, idsIn("uid", "queued"));
  const edges = edgesFrom(books, idsIn("run_id", "waiting", "sleeping"));
  const apps = appsWaitedFor(books, rows);
  return new Map(
    rows.map((row) => {
      const waits = {
        runIds: waitedFor(row, busy, edges),
        wakeAt: row.state === "sleeping" ? numberOrNull(row.wake_at) : null,
        ...(apps.get(String(row.run_id)) ?? { app: null, missingTools: [] }),
        ...(row.owner !== null && books.options.isGone(String(row.owner)) ? { isOwnerGone: true } : {}),
      };
      return [String(row.run_id), waits];
    }),
  );
}

/** The apps that queued runs wait for because this process cannot claim them. */
function appsWaitedFor(
  books: Books,
  rows: readonly Record<string, unknown>[],
): ReadonlyMap<string, Pick<RunWaits, "app" | "missingTools">> {
  const waiting = rows.filter((row) => row.state === "queued" && row.app !== "" && row.kept_for === null);
  if (waiting.length === 0) return new Map();
  const ids = JSON.stringify(waiting.map(({ run_id }) => run_id));
  const runs = books.rows("run_id IN (SELECT value FROM json_each(?))", ids);
  return new Map(
    runs.flatMap((run) => {
      const lacking = lackingHere(books, run);
      return lacking === null ? [] : [[run.runId, { app: lacking.app, missingTools: lacking.tools }]];
    }),
  );
}

/** Of one run; of one that is unknown, nothing. */
export function waitsFor(books: Books, runId: string): readonly string[] {
  return waitsOf(books, [runId]).get(runId)?.runIds ?? [];
}

type Edges = ReadonlyMap<string, readonly string[]>;

/** A queued run waits for the run that works in its session, and for a turn there that lost its owner midway. */
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

function busyIn(books: Books, uids: readonly string[]): Edges {
  const sql = `SELECT uid AS at, run_id AS id FROM runs ${among("uid")} AND state IN ('running', 'waiting')
    UNION ALL SELECT uid, run_id FROM runs ${among("uid")} AND state = 'queued' AND rank = ${ranks.recovered}`;
  return pairs(books, sql, uids);
}

function edgesFrom(books: Books, runIds: readonly string[]): Edges {
  const sql = `SELECT from_run AS at, to_run AS id FROM run_waits ${among("from_run")} AND arrived = 0`;
  return pairs(books, sql, runIds);
}

function pairs(books: Books, sql: string, names: readonly string[]): Edges {
  if (names.length === 0) return new Map();
  const found = Map.groupBy(books.all(sql, JSON.stringify(names)), ({ at }) => String(at));
  return new Map([...found].map(([at, rows]) => [at, rows.map(({ id }) => String(id))]));
}

/** One text, and so one prepared query, for any number of names. */
function among(column: string): string {
  return `WHERE ${column} IN (SELECT value FROM json_each(?1))`;
}
