import { rowSecurity } from "./schema-tables.ts";

/**
 * The run tables. They have the same columns as in `work.db`, so that the same scripts run on both databases. Tables
 * that have no user column in `work.db` also have a `tenant` column, which is filled in from the transaction's setting
 * and exists only for row-level security.
 */

const runs = `
CREATE TABLE skein.runs (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id text COLLATE "C" NOT NULL UNIQUE,
  "user" text COLLATE "C" NOT NULL,
  idem text COLLATE "C",
  uid text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  mode text COLLATE "C" NOT NULL,
  rank integer NOT NULL,
  entry_id text COLLATE "C" NOT NULL,
  root text COLLATE "C" NOT NULL,
  hops integer NOT NULL,
  state text COLLATE "C" NOT NULL,
  fence bigint NOT NULL DEFAULT 0,
  owner text COLLATE "C",
  lease_until bigint,
  lost integer NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  started_at bigint,
  ended_at bigint,
  deadline bigint,
  outcome text,
  usage text,
  merged_into text COLLATE "C",
  kept_for text COLLATE "C",
  arrival_of text COLLATE "C",
  started_by text COLLATE "C",
  silent integer NOT NULL,
  abort integer NOT NULL DEFAULT 0,
  abort_reason text,
  written integer NOT NULL DEFAULT 0,
  woken integer NOT NULL DEFAULT 0,
  resuming integer NOT NULL DEFAULT 0,
  slept_at bigint,
  wake_at bigint,
  not_before bigint,
  followed integer NOT NULL DEFAULT 0,
  retry_of text COLLATE "C",
  retried_as text COLLATE "C",
  app text COLLATE "C" NOT NULL DEFAULT '',
  tools text COLLATE "C" NOT NULL DEFAULT '[]',
  source text COLLATE "C"
);
CREATE UNIQUE INDEX runs_idem ON skein.runs ("user", idem) WHERE idem IS NOT NULL;
CREATE INDEX runs_session ON skein.runs (uid, seq);
CREATE INDEX runs_user ON skein.runs ("user", seq);
CREATE INDEX runs_root ON skein.runs (root, seq);
CREATE INDEX runs_state ON skein.runs (state, seq) WHERE ended_at IS NULL;
CREATE INDEX runs_queued ON skein.runs (uid, app, tools, rank, seq) WHERE state = 'queued';
CREATE INDEX runs_active ON skein.runs (uid, lane, silent, resuming, state) WHERE state IN ('running', 'waiting');
CREATE INDEX runs_wake ON skein.runs (wake_at) WHERE state = 'sleeping';
CREATE INDEX runs_deadline ON skein.runs (deadline) WHERE state = 'queued' AND deadline IS NOT NULL;
CREATE INDEX runs_ended ON skein.runs (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX runs_merged ON skein.runs (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX runs_kept ON skein.runs (kept_for, seq) WHERE kept_for IS NOT NULL;
CREATE INDEX runs_arrival ON skein.runs (arrival_of) WHERE arrival_of IS NOT NULL;
CREATE INDEX runs_started ON skein.runs (started_by) WHERE started_by IS NOT NULL;
CREATE INDEX runs_held_back ON skein.runs (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX runs_open ON skein.runs (uid, seq) WHERE ended_at IS NULL;
CREATE INDEX runs_last ON skein.runs (uid, ended_at) WHERE ended_at IS NOT NULL AND silent = 0;
CREATE INDEX runs_lost ON skein.runs (seq) WHERE lost > 3;
CREATE INDEX runs_waiting_app ON skein.runs (seq) WHERE state = 'queued' AND app <> '';
CREATE INDEX runs_source ON skein.runs ("user", source, seq) WHERE source IS NOT NULL;
CREATE INDEX runs_failed ON skein.runs ("user", uid) WHERE state IN ('error', 'timeout') AND silent = 0;
`;

const tenant = `tenant text COLLATE "C" NOT NULL DEFAULT substr(current_setting('skein.run_user'), 2)`;

const queue = `
CREATE TABLE skein.run_inputs (
  seq bigint PRIMARY KEY, message text NOT NULL, options text NOT NULL, provenance text, ${tenant}
);
CREATE TABLE skein.run_partials (run_id text COLLATE "C" PRIMARY KEY, text text NOT NULL, ${tenant});
CREATE TABLE skein.run_waits (
  from_run text COLLATE "C" NOT NULL, to_run text COLLATE "C" NOT NULL, arrived integer NOT NULL DEFAULT 0, ${tenant},
  PRIMARY KEY (from_run, to_run)
);
CREATE INDEX run_waits_to ON skein.run_waits (to_run);
CREATE TABLE skein.ready (
  uid text COLLATE "C" NOT NULL, app text COLLATE "C" NOT NULL, tools text COLLATE "C" NOT NULL,
  slot text COLLATE "C" NOT NULL, "user" text COLLATE "C" NOT NULL, turn bigint NOT NULL, seq bigint NOT NULL,
  PRIMARY KEY (uid, app, tools)
);
CREATE INDEX ready_next ON skein.ready (app, slot, "user", turn, seq);
CREATE TABLE skein.ready_users (
  app text COLLATE "C" NOT NULL, slot text COLLATE "C" NOT NULL, "user" text COLLATE "C" NOT NULL,
  turn bigint NOT NULL, count integer NOT NULL, PRIMARY KEY (app, slot, "user")
);
CREATE INDEX ready_users_next ON skein.ready_users (app, slot, turn, "user") WHERE count > 0;
CREATE INDEX ready_users_turn ON skein.ready_users (slot, turn);
CREATE INDEX ready_users_user ON skein.ready_users (slot, "user", turn);
CREATE TABLE skein.turns (
  uid text COLLATE "C" NOT NULL, slot text COLLATE "C" NOT NULL, turn bigint NOT NULL, ${tenant},
  PRIMARY KEY (uid, slot)
);
CREATE TABLE skein.loop_turns (
  uid text COLLATE "C" PRIMARY KEY, owner text COLLATE "C" NOT NULL, lease_until bigint NOT NULL, ${tenant}
);
CREATE TABLE skein.session_apps (
  "user" text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, app text COLLATE "C" NOT NULL,
  tools text COLLATE "C" NOT NULL, PRIMARY KEY ("user", key)
);
`;

const budgets = `
CREATE TABLE skein.budgets (
  root text COLLATE "C" PRIMARY KEY, runs integer NOT NULL, tokens bigint NOT NULL, cost double precision NOT NULL,
  priced integer NOT NULL, hops integer NOT NULL, touched_at bigint NOT NULL, ${tenant}
);
CREATE INDEX budgets_touched ON skein.budgets (touched_at);
CREATE TABLE skein.budget_pairs (
  root text COLLATE "C" NOT NULL, a text COLLATE "C" NOT NULL, b text COLLATE "C" NOT NULL, count integer NOT NULL,
  ${tenant}, PRIMARY KEY (root, a, b)
);
`;

const deliveries = `
CREATE TABLE skein.approvals (
  approval_id text COLLATE "C" PRIMARY KEY, run_id text COLLATE "C" NOT NULL, "user" text COLLATE "C" NOT NULL,
  tool_call_id text NOT NULL, tool_name text NOT NULL, arguments text NOT NULL, requested_at bigint NOT NULL,
  expires_at bigint NOT NULL, answer text, resolved_at bigint, by text, note text
);
CREATE INDEX approvals_run ON skein.approvals (run_id);
CREATE INDEX approvals_open ON skein.approvals (expires_at) WHERE answer IS NULL;
CREATE TABLE skein.outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, outbox_id text COLLATE "C" NOT NULL UNIQUE,
  "user" text COLLATE "C" NOT NULL, idem text COLLATE "C" NOT NULL, uid text COLLATE "C" NOT NULL,
  session text NOT NULL, run_id text COLLATE "C", target text NOT NULL, text text NOT NULL,
  state text COLLATE "C" NOT NULL, attempts integer NOT NULL DEFAULT 0, created_at bigint NOT NULL,
  next_at bigint NOT NULL, ended_at bigint, last_error text, receipt text, owner text COLLATE "C", lease_until bigint,
  app text COLLATE "C" NOT NULL DEFAULT '', channel text COLLATE "C" NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX outbox_idem ON skein.outbox ("user", idem);
CREATE INDEX outbox_due ON skein.outbox (channel, next_at) WHERE state = 'queued';
CREATE INDEX outbox_state ON skein.outbox (state, seq);
CREATE INDEX outbox_session ON skein.outbox (uid);
CREATE INDEX outbox_ended ON skein.outbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE skein.run_replies (
  run_id text COLLATE "C" PRIMARY KEY, by_run text COLLATE "C", by_owner text COLLATE "C", until bigint NOT NULL,
  state text COLLATE "C" NOT NULL, settled_at bigint, ${tenant}
);
CREATE INDEX run_replies_by ON skein.run_replies (by_run) WHERE state = 'open' AND by_run IS NOT NULL;
CREATE INDEX run_replies_returned ON skein.run_replies (state) WHERE state = 'returned';
CREATE TABLE skein.children (
  run_id text COLLATE "C" PRIMARY KEY, "user" text COLLATE "C" NOT NULL, parent_key text COLLATE "C" NOT NULL,
  spawn_id text COLLATE "C" NOT NULL UNIQUE, label text, task text NOT NULL, mode text COLLATE "C" NOT NULL,
  cleanup text COLLATE "C" NOT NULL, attachments text, archive_after bigint, tidied_at bigint
);
CREATE INDEX children_parent ON skein.children ("user", parent_key);
CREATE INDEX children_untidied ON skein.children (run_id)
  WHERE tidied_at IS NULL AND mode = 'run' AND (cleanup = 'delete' OR archive_after IS NOT NULL);
CREATE TABLE skein.threads (
  "user" text COLLATE "C" NOT NULL, channel text COLLATE "C" NOT NULL, account text COLLATE "C" NOT NULL,
  thread text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, PRIMARY KEY ("user", channel, account, thread)
);
CREATE INDEX threads_key ON skein.threads ("user", key);
`;

/**
 * Copies the holder and its fence to the session's row in every transaction that changes them. A write compares them
 * with the row that it locks: after waiting for that lock, a condition on `runs` would be checked against an outdated
 * snapshot.
 */
const holder = `
CREATE FUNCTION skein.note_holder() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF OLD.state IN ('running', 'waiting')
    AND (NEW.state NOT IN ('running', 'waiting') OR NEW.uid <> OLD.uid OR NEW.fence <> OLD.fence) THEN
    UPDATE skein.sessions SET holder_run = NULL WHERE uid = OLD.uid AND holder_run = OLD.run_id;
  END IF;
  IF NEW.state IN ('running', 'waiting') THEN
    UPDATE skein.sessions SET holder_run = NEW.run_id, fence = NEW.fence
      WHERE uid = NEW.uid AND (holder_run IS DISTINCT FROM NEW.run_id OR fence <> NEW.fence);
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER runs_holder AFTER UPDATE OF state, fence, uid ON skein.runs
  FOR EACH ROW EXECUTE FUNCTION skein.note_holder();
`;

/** Reads the rows of all users, and returns nothing that identifies a user. */
const forEveryUser = (signature: string, query: string) => `
CREATE FUNCTION skein.${signature}
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := current_setting('skein.run_user', true);
BEGIN
  PERFORM set_config('skein.run_user', '*', true);
  RETURN QUERY ${query};
  PERFORM set_config('skein.run_user', before, true);
END
$$;`;

/** Lanes are shared by all users, and users take turns. */
export function createLaneFunctions(): string {
  return [
    forEveryUser(
      "taken_slots(with_resuming bigint) RETURNS TABLE (lane text, count bigint)",
      `SELECT runs.lane, count(*) FROM skein.runs WHERE state IN ('running', 'waiting') AND silent = 0
       AND (state = 'running' OR (resuming = 1 AND with_resuming = 1)) GROUP BY runs.lane`,
    ),
    forEveryUser(
      "last_turn(of_slot text) RETURNS TABLE (turn bigint)",
      "SELECT coalesce(max(ready_users.turn), 0) FROM skein.ready_users WHERE slot = of_slot",
    ),
  ].join("\n");
}

const namedByUser = [
  "runs",
  "ready",
  "ready_users",
  "session_apps",
  "approvals",
  "outbox",
  "children",
  "threads",
];
const namedByTenant = [
  "run_inputs",
  "run_partials",
  "run_waits",
  "turns",
  "loop_turns",
  "budgets",
  "budget_pairs",
  "run_replies",
];

const firstRunTables: readonly string[] = [...namedByUser, ...namedByTenant];
export const runTables: readonly string[] = [...firstRunTables, "schedules"];

/** The setting starts with a letter, because an empty setting means that no user is set. */
function ownRows(table: string): string {
  const setting = "current_setting('skein.run_user', true)";
  const column = namedByTenant.includes(table) ? "tenant" : '"user"';
  return rowSecurity(table, `'u' || ${column} = ${setting}`, `${setting} = '*'`);
}

export function createRunTables(): string {
  return [runs, queue, budgets, deliveries, holder, ...firstRunTables.map(ownRows)].join("\n");
}

/** The migration that adds schedules. */
export function createSchedules(): string {
  return `
CREATE TABLE skein.schedules (
  "user" text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, pattern text NOT NULL,
  settled_until bigint NOT NULL, paused_at bigint, last_run text COLLATE "C", last_at bigint,
  PRIMARY KEY ("user", name)
);
${ownRows("schedules")}`;
}

/**
 * The migration that deletes loop turns recorded under the unnamed user although their sessions belong to other users.
 * Row-level security hides such a row from its user, whose own turn then violates the primary key.
 */
export function freeLoopTurns(): string {
  return `
DELETE FROM skein.loop_turns AS t WHERE t.tenant = '' AND NOT EXISTS (
  SELECT FROM skein.sessions AS s WHERE s.uid = t.uid AND s.user_id = '~unnamed'
);`;
}
