import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Script, SqlRow } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { Child, ChildRequest, Run, RunState, ThreadRef } from "../contract.ts";
import type { RunRow, RunTransaction } from "./run-ledger.ts";
import { numberOrNull, publicRun, textOrNull } from "./run-ledger.ts";

/**
 * Throws if the parent has too many open children. Called in the transaction that accepts the child's first run, so
 * that concurrent spawns cannot exceed the limit.
 */
export function* checkChildLimit(
  tx: RunTransaction,
  { userId }: SessionRef,
  { parentKey, maxChildren }: ChildRequest,
): Script<void> {
  const counted = yield* tx.get(
    `SELECT count(*) AS active FROM children JOIN runs USING (run_id)
     WHERE children.user = ? AND parent_key = ? AND ended_at IS NULL`,
    userId ?? "",
    parentKey,
  );
  const active = Number(counted?.active ?? 0);
  if (active >= maxChildren) throw new SkeinError("children_exceeded", { active, max: maxChildren });
}

export function* registerChild(
  tx: RunTransaction,
  runId: string,
  session: SessionRef,
  child: ChildRequest,
): Script<void> {
  yield* tx.run(
    `INSERT INTO children (run_id, user, parent_key, spawn_id, label, task, mode, cleanup, attachments, archive_after)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    runId,
    session.userId ?? "",
    child.parentKey,
    child.spawnId,
    child.label ?? null,
    child.task,
    child.mode,
    child.cleanup,
    child.attachments ?? null,
    child.archiveAfterMs ?? null,
  );
}

export function* listChildren(
  tx: RunTransaction,
  userId: string | null,
  parentKey: string,
  { endedSince, open }: { readonly endedSince?: number; readonly open?: boolean } = {},
): Script<Child[]> {
  const conditions = [
    ...(endedSince === undefined ? [] : ["(ended_at IS NULL OR ended_at >= ?)"]),
    ...(open === undefined ? [] : [`ended_at IS ${open ? "NULL" : "NOT NULL"}`]),
    "true",
  ].join(" AND ");
  const found = yield* tx.all(
    `SELECT children.* FROM children JOIN runs USING (run_id)
     WHERE children.user = ? AND parent_key = ? AND ${conditions} ORDER BY seq DESC`,
    userId ?? "",
    parentKey,
    ...(endedSince === undefined ? [] : [endedSince]),
  );
  return yield* childrenOf(tx, found);
}

/** Adds the first run to each row of `children`. Omits children without one. */
function* childrenOf(tx: RunTransaction, rows: readonly SqlRow[]): Script<Child[]> {
  if (rows.length === 0) return [];
  const ids = JSON.stringify(rows.map(({ run_id }) => run_id));
  const found = yield* tx.rows("run_id IN (SELECT value FROM json_each(?))", ids);
  const runs = new Map(found.map((run) => [run.runId, run]));
  return rows.flatMap((row) => {
    const run = runs.get(String(row.run_id));
    return run === undefined ? [] : [childOf(row, run)];
  });
}

function childOf(row: SqlRow, run: RunRow): Child {
  const child = {
    run: publicRun(run),
    parentKey: String(row.parent_key),
    spawnId: String(row.spawn_id),
    task: String(row.task),
    mode: row.mode as Child["mode"],
    cleanup: row.cleanup as Child["cleanup"],
    tidiedAt: numberOrNull(row.tidied_at),
  };
  const label = textOrNull(row.label);
  const attachments = textOrNull(row.attachments);
  const archiveAfterMs = numberOrNull(row.archive_after);
  return { ...child, ...present({ label, attachments, archiveAfterMs }) };
}

/** How long a waiter with an open run has to write a reply it has taken. */
const takenReplyMs = 60_000;
const maxDueChildren = 100;

/**
 * The result is in the parent's session or in the outbox, or a waiter took it and has since written it, ended or timed
 * out.
 */
const resultDelivered = `(
  EXISTS (SELECT 1 FROM runs AS told WHERE told.user = children.user AND told.idem = 'announce:' || children.run_id
    AND (told.written = 1 OR told.ended_at IS NOT NULL))
  OR EXISTS (SELECT 1 FROM outbox WHERE outbox.user = children.user AND outbox.idem = 'announce:' || children.run_id)
  OR EXISTS (SELECT 1 FROM run_replies LEFT JOIN runs AS waiter ON waiter.run_id = by_run
    WHERE run_replies.run_id = children.run_id AND (run_replies.state = 'written'
      OR (run_replies.state = 'taken' AND (waiter.ended_at IS NOT NULL OR settled_at <= ?)))))`;

/**
 * A child with an open run is not due. The order is random so that one failing child does not block the others.
 */
const dueChildren = `SELECT children.* FROM children INDEXED BY children_untidied JOIN runs AS first USING (run_id)
  WHERE tidied_at IS NULL AND children.mode = 'run' AND (cleanup = 'delete' OR archive_after IS NOT NULL)
  AND first.ended_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM runs AS other WHERE other.uid = first.uid AND other.ended_at IS NULL)
  AND CASE cleanup WHEN 'delete' THEN ${resultDelivered} ELSE first.ended_at + archive_after <= ? END
  ORDER BY random() LIMIT ${maxDueChildren}`;

export function* findChildrenToTidy(
  tx: RunTransaction,
): Script<{ readonly child: Child; readonly act: "remove" | "archive" }[]> {
  const now = tx.now();
  const children = yield* childrenOf(tx, yield* tx.all(dueChildren, now - takenReplyMs, now));
  return children.map((child) => ({ child, act: child.cleanup === "delete" ? "remove" : "archive" }));
}

export function* markTidied(tx: RunTransaction, runId: string): Script<void> {
  yield* tx.run("UPDATE children SET tidied_at = ? WHERE run_id = ? AND tidied_at IS NULL", tx.now(), runId);
}

/** Emits this run's state as an event of the run that spawned it. */
export function* emitChildState(
  tx: RunTransaction,
  { kind, startedBy, session, runId }: Pick<Run, "kind" | "startedBy" | "session" | "runId">,
  state: RunState,
): Script<void> {
  if (kind !== "spawn" || startedBy === null) return;
  const starter = yield* tx.row(startedBy);
  if (starter === null) return;
  tx.addEvent("run.child", starter.session, startedBy, {
    childSessionKey: session.key,
    childRunId: runId,
    state,
  });
}

export function* bindThread(
  tx: RunTransaction,
  userId: string | null,
  thread: ThreadRef,
  key: string,
): Script<void> {
  yield* tx.run(
    `INSERT INTO threads (user, channel, account, thread, key) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (user, channel, account, thread) DO UPDATE SET key = excluded.key`,
    userId ?? "",
    ...threadColumns(thread),
    key,
  );
}

export function* findThreadKey(
  tx: RunTransaction,
  userId: string | null,
  thread: ThreadRef,
): Script<string | null> {
  const sql = "SELECT key FROM threads WHERE user = ? AND channel = ? AND account = ? AND thread = ?";
  const row = yield* tx.get(sql, userId ?? "", ...threadColumns(thread));
  return row === undefined ? null : String(row.key);
}

/** Deletes the thread bindings and the app of a key that no longer belongs to any session. */
export function* unbindThreads(tx: RunTransaction, userId: string | null, key: string): Script<void> {
  if ((yield* tx.sessionAt(userId, { key })) !== null) return;
  for (const table of ["threads", "session_apps"])
    yield* tx.run(`DELETE FROM ${table} WHERE user = ? AND key = ?`, userId ?? "", key);
}

function threadColumns({ channel, accountId, threadId }: ThreadRef): [string, string, string] {
  return [channel, accountId ?? "", threadId];
}
