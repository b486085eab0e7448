import type { LedgerPart } from "../../core/migrate-part.ts";
import { migratePart } from "../../core/migrate-part.ts";
import type { Script } from "../../core/script.ts";
import { changeRows, queryRows } from "../../core/script.ts";
import type { Ledger } from "../contract.ts";
import { refreshQueue } from "./ready-queue.ts";

/**
 * The run tables in `work.db`. Their schema version is stored in `facts`. Long values that never change (`run_inputs`)
 * are stored separately from columns that change often (`runs`).
 *
 * `ready` has one row for each combination of session, app and required tools that has a run to claim once its lane has
 * a free slot. `ready_users` counts these rows by user. Finding the next run therefore takes only a few index lookups,
 * no matter how many runs are waiting.
 */
export const runSteps: readonly (readonly string[])[] = [
  [
    `CREATE TABLE runs (
       seq INTEGER PRIMARY KEY AUTOINCREMENT,
       run_id TEXT NOT NULL UNIQUE,
       user TEXT NOT NULL,
       idem TEXT,
       uid TEXT NOT NULL,
       agent TEXT NOT NULL,
       key TEXT NOT NULL,
       session_id TEXT NOT NULL,
       kind TEXT NOT NULL,
       lane TEXT NOT NULL,
       mode TEXT NOT NULL,
       rank INTEGER NOT NULL,
       entry_id TEXT NOT NULL,
       root TEXT NOT NULL,
       hops INTEGER NOT NULL,
       state TEXT NOT NULL,
       fence INTEGER NOT NULL DEFAULT 0,
       owner TEXT,
       lease_until INTEGER,
       lost INTEGER NOT NULL DEFAULT 0,
       created_at INTEGER NOT NULL,
       started_at INTEGER,
       ended_at INTEGER,
       deadline INTEGER,
       outcome TEXT,
       usage TEXT,
       merged_into TEXT,
       kept_for TEXT,
       arrival_of TEXT,
       started_by TEXT,
       silent INTEGER NOT NULL,
       abort INTEGER NOT NULL DEFAULT 0,
       abort_reason TEXT,
       written INTEGER NOT NULL DEFAULT 0,
       woken INTEGER NOT NULL DEFAULT 0,
       resuming INTEGER NOT NULL DEFAULT 0,
       slept_at INTEGER,
       wake_at INTEGER
     ) STRICT`,
    "CREATE UNIQUE INDEX runs_idem ON runs (user, idem) WHERE idem IS NOT NULL",
    "CREATE INDEX runs_session ON runs (uid, seq)",
    "CREATE INDEX runs_user ON runs (user, seq)",
    "CREATE INDEX runs_root ON runs (root, seq)",
    "CREATE INDEX runs_state ON runs (state, seq) WHERE ended_at IS NULL",
    "CREATE INDEX runs_queued ON runs (uid, rank, seq) WHERE state = 'queued'",
    "CREATE INDEX runs_active ON runs (uid, lane, silent, resuming, state) WHERE state IN ('running', 'waiting')",
    "CREATE INDEX runs_wake ON runs (wake_at) WHERE state = 'sleeping'",
    "CREATE INDEX runs_deadline ON runs (deadline) WHERE state = 'queued' AND deadline IS NOT NULL",
    "CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL",
    "CREATE INDEX runs_merged ON runs (merged_into) WHERE merged_into IS NOT NULL",
    "CREATE INDEX runs_kept ON runs (kept_for, seq) WHERE kept_for IS NOT NULL",
    "CREATE INDEX runs_arrival ON runs (arrival_of) WHERE arrival_of IS NOT NULL",
    "CREATE INDEX runs_started ON runs (started_by) WHERE started_by IS NOT NULL",
    `CREATE TABLE run_inputs (
       seq INTEGER PRIMARY KEY, message TEXT NOT NULL, options TEXT NOT NULL, provenance TEXT) STRICT`,
    "CREATE TABLE run_partials (run_id TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID",
    `CREATE TABLE run_waits (
       from_run TEXT NOT NULL, to_run TEXT NOT NULL, arrived INTEGER NOT NULL DEFAULT 0,
       PRIMARY KEY (from_run, to_run)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX run_waits_to ON run_waits (to_run)",
    `CREATE TABLE ready (
       uid TEXT PRIMARY KEY, slot TEXT NOT NULL, user TEXT NOT NULL, turn INTEGER NOT NULL,
       seq INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
    "CREATE INDEX ready_next ON ready (slot, user, turn, seq)",
    `CREATE TABLE ready_users (
       slot TEXT NOT NULL, user TEXT NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL,
       PRIMARY KEY (slot, user)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX ready_users_next ON ready_users (slot, turn, user) WHERE count > 0",
    "CREATE INDEX ready_users_turn ON ready_users (slot, turn)",
    `CREATE TABLE turns (
       uid TEXT NOT NULL, slot TEXT NOT NULL, turn INTEGER NOT NULL,
       PRIMARY KEY (uid, slot)) STRICT, WITHOUT ROWID`,
    `CREATE TABLE budgets (
       root TEXT PRIMARY KEY, runs INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL,
       priced INTEGER NOT NULL, hops INTEGER NOT NULL, touched_at INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
    "CREATE INDEX budgets_touched ON budgets (touched_at)",
    `CREATE TABLE budget_pairs (
       root TEXT NOT NULL, a TEXT NOT NULL, b TEXT NOT NULL, count INTEGER NOT NULL,
       PRIMARY KEY (root, a, b)) STRICT, WITHOUT ROWID`,
    `CREATE TABLE approvals (
       approval_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, user TEXT NOT NULL, tool_call_id TEXT NOT NULL,
       tool_name TEXT NOT NULL, arguments TEXT NOT NULL, requested_at INTEGER NOT NULL, expires_at INTEGER NOT NULL,
       answer TEXT, resolved_at INTEGER, by TEXT) STRICT`,
    "CREATE INDEX approvals_run ON approvals (run_id)",
    "CREATE INDEX approvals_open ON approvals (expires_at) WHERE answer IS NULL",
    `CREATE TABLE outbox (
       seq INTEGER PRIMARY KEY AUTOINCREMENT, outbox_id TEXT NOT NULL UNIQUE, user TEXT NOT NULL, idem TEXT NOT NULL,
       uid TEXT NOT NULL, session TEXT NOT NULL, run_id TEXT, target TEXT NOT NULL, text TEXT NOT NULL,
       state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, next_at INTEGER NOT NULL,
       ended_at INTEGER, last_error TEXT, receipt TEXT, owner TEXT, lease_until INTEGER) STRICT`,
    "CREATE UNIQUE INDEX outbox_idem ON outbox (user, idem)",
    "CREATE INDEX outbox_due ON outbox (next_at) WHERE state = 'queued'",
    "CREATE INDEX outbox_state ON outbox (state, seq)",
    "CREATE INDEX outbox_session ON outbox (uid)",
    "CREATE INDEX outbox_ended ON outbox (ended_at) WHERE ended_at IS NOT NULL",
  ],
  [
    // The announcement is held until this time so that others can join it.
    "ALTER TABLE runs ADD COLUMN not_before INTEGER",
    // The run has a sequel, or a caller is awaiting its reply.
    "ALTER TABLE runs ADD COLUMN followed INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX runs_held_back ON runs (not_before) WHERE not_before IS NOT NULL",
    "CREATE INDEX runs_open ON runs (uid, seq) WHERE ended_at IS NULL",
    "CREATE INDEX runs_last ON runs (uid, ended_at) WHERE ended_at IS NOT NULL AND silent = 0",
    `CREATE TABLE run_replies (
       run_id TEXT PRIMARY KEY, by_run TEXT, by_owner TEXT, until INTEGER NOT NULL, state TEXT NOT NULL,
       settled_at INTEGER) STRICT, WITHOUT ROWID`,
    "CREATE INDEX run_replies_by ON run_replies (by_run) WHERE state = 'open' AND by_run IS NOT NULL",
    `CREATE TABLE children (
       run_id TEXT PRIMARY KEY, user TEXT NOT NULL, parent_key TEXT NOT NULL, spawn_id TEXT NOT NULL UNIQUE, label TEXT,
       task TEXT NOT NULL, mode TEXT NOT NULL, cleanup TEXT NOT NULL, attachments TEXT, archive_after INTEGER,
       tidied_at INTEGER) STRICT, WITHOUT ROWID`,
    "CREATE INDEX children_parent ON children (user, parent_key)",
    `CREATE INDEX children_untidied ON children (run_id)
       WHERE tidied_at IS NULL AND mode = 'run' AND (cleanup = 'delete' OR archive_after IS NOT NULL)`,
    `CREATE TABLE threads (
       user TEXT NOT NULL, channel TEXT NOT NULL, account TEXT NOT NULL, thread TEXT NOT NULL, key TEXT NOT NULL,
       PRIMARY KEY (user, channel, account, thread)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX threads_key ON threads (user, key)",
  ],
  [
    "ALTER TABLE runs ADD COLUMN retry_of TEXT",
    "ALTER TABLE runs ADD COLUMN retried_as TEXT",
    "CREATE INDEX runs_lost ON runs (seq) WHERE lost > 3",
  ],
  [
    // The app whose processes can claim the run, and the tools that they must offer. Empty if any process that has the
    // agent can claim it.
    "ALTER TABLE runs ADD COLUMN app TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE runs ADD COLUMN tools TEXT NOT NULL DEFAULT '[]'",
    "CREATE INDEX runs_queued_app ON runs (uid, app, tools, rank, seq) WHERE state = 'queued'",
    "CREATE INDEX runs_waiting_app ON runs (seq) WHERE state = 'queued' AND app <> ''",
    // The app of the session's last run. It continues the session even after that run has been deleted.
    `CREATE TABLE session_apps (
       user TEXT NOT NULL, key TEXT NOT NULL, app TEXT NOT NULL, tools TEXT NOT NULL,
       PRIMARY KEY (user, key)) STRICT, WITHOUT ROWID`,
    // One row per app and set of tools, so that a run waiting for an app does not block the session's other runs.
    "CREATE TABLE old_ready AS SELECT * FROM ready",
    "CREATE TABLE old_ready_users AS SELECT * FROM ready_users",
    "DROP TABLE ready",
    "DROP TABLE ready_users",
    `CREATE TABLE ready (
       uid TEXT NOT NULL, app TEXT NOT NULL, tools TEXT NOT NULL, slot TEXT NOT NULL, user TEXT NOT NULL,
       turn INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (uid, app, tools)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX ready_next ON ready (app, slot, user, turn, seq)",
    `CREATE TABLE ready_users (
       app TEXT NOT NULL, slot TEXT NOT NULL, user TEXT NOT NULL, turn INTEGER NOT NULL, count INTEGER NOT NULL,
       PRIMARY KEY (app, slot, user)) STRICT, WITHOUT ROWID`,
    "CREATE INDEX ready_users_next ON ready_users (app, slot, turn, user) WHERE count > 0",
    "CREATE INDEX ready_users_turn ON ready_users (slot, turn)",
    "CREATE INDEX ready_users_user ON ready_users (slot, user, turn)",
    "INSERT INTO ready SELECT uid, '', '[]', slot, user, turn, seq FROM old_ready",
    "INSERT INTO ready_users SELECT '', slot, user, turn, count FROM old_ready_users",
    "DROP TABLE old_ready",
    "DROP TABLE old_ready_users",
    // Only a process of this app delivers the row. Empty if any process that has the channel can deliver it.
    "ALTER TABLE outbox ADD COLUMN app TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE outbox ADD COLUMN channel TEXT NOT NULL DEFAULT ''",
    "UPDATE outbox SET channel = coalesce(json_extract(target, '$.channel'), '')",
    "DROP INDEX outbox_due",
    "CREATE INDEX outbox_due ON outbox (channel, next_at) WHERE state = 'queued'",
  ],
  ["CREATE INDEX run_replies_returned ON run_replies (state) WHERE state = 'returned'"],
  [
    `CREATE TABLE loop_turns (
       uid TEXT PRIMARY KEY, owner TEXT NOT NULL, lease_until INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
  ],
  [
    // The key of the session that the input came from.
    "ALTER TABLE runs ADD COLUMN source TEXT",
    `UPDATE runs SET source =
       (SELECT json_extract(provenance, '$.sourceSessionKey') FROM run_inputs WHERE run_inputs.seq = runs.seq)
     WHERE kind IN ('send', 'ping_pong', 'announce', 'spawn', 'note')`,
    "CREATE INDEX runs_source ON runs (user, source, seq) WHERE source IS NOT NULL",
  ],
  [
    // Sessions whose last run might have failed.
    "CREATE INDEX runs_failed ON runs (user, uid) WHERE state IN ('error', 'timeout') AND silent = 0",
  ],
  // The reason a person gave for a denial.
  ["ALTER TABLE approvals ADD COLUMN note TEXT"],
  [
    // `pattern` is the expression and the time zone. Due times up to `settled_until` have started a run or were
    // skipped.
    `CREATE TABLE schedules (
       user TEXT NOT NULL, name TEXT NOT NULL, pattern TEXT NOT NULL, settled_until INTEGER NOT NULL, paused_at INTEGER,
       last_run TEXT, last_at INTEGER, PRIMARY KEY (user, name)) STRICT, WITHOUT ROWID`,
  ],
];

const fact = "schema.runs";

export function migrateRuns(ledger: Ledger, steps: LedgerPart["steps"] = runSteps): void {
  migratePart(ledger, { fact, about: "runs", steps });
}

/**
 * Makes the run tables consistent after rows have been lost: deletes runs without input and rebuilds the ready queue.
 */
export function* repairRunTables(): Script<{ readonly table: string; readonly rows: number }[]> {
  const lost = yield* changeRows("DELETE FROM runs WHERE seq NOT IN (SELECT seq FROM run_inputs)");
  yield* changeRows("DELETE FROM run_inputs WHERE seq NOT IN (SELECT seq FROM runs)");
  yield* changeRows("DELETE FROM ready");
  yield* changeRows("DELETE FROM ready_users");
  for (const { uid } of yield* queryRows("SELECT DISTINCT uid FROM runs WHERE state = 'queued'"))
    yield* refreshQueue(String(uid));
  return [{ table: "runs", rows: lost }];
}

/** Counts what would be lost along with the run tables: input that is not in a log yet, and unfinished turns. */
export function countOpenRuns(ledger: Ledger): { queuedInputs: number; unfinishedRuns: number } {
  const sql =
    "SELECT count(*) AS count, coalesce(sum(written), 0) AS written FROM runs WHERE ended_at IS NULL";
  const { count, written } = ledger.sql(sql).get() ?? {};
  return { queuedInputs: Number(count) - Number(written), unfinishedRuns: Number(written) };
}
