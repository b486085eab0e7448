import { messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import type { FenceScript, Script } from "../../core/script.ts";
import type { HeldRun } from "../contract.ts";
import { ranks } from "../lanes.ts";
import { lostCode, mostLost, nextState, retryHint, timeoutText } from "../states.ts";
import { listExpiredApprovals, resolveApproval } from "./approvals.ts";
import { emitChildState } from "./children.ts";
import { isBatchDue, nextBatchAt, releaseDueBatches } from "./claim-eligibility.ts";
import { isUnreadDelivery } from "./dead-letter.ts";
import { abortError, endRun, wakeRun } from "./end-run.ts";
import { putDeadLetter } from "./outbox.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { fenced, numberOrNull } from "./run-ledger.ts";
import { endDurability, returnedReplies, settleReturnedReplies } from "./start-sequel.ts";

/** Ends a queued run that cannot continue, in one transaction. */
export function endUnclaimed(
  ledger: RunLedger,
  row: RunRow,
  why: "deadline" | "not_found" | SkeinError,
): Promise<void> {
  return ledger.change(
    (tx) => endDurability(tx, row.runId),
    row,
    (tx) => endIfQueued(tx, row, why),
  );
}

function* endIfQueued(
  tx: RunTransaction,
  { runId }: RunRow,
  why: "deadline" | "not_found" | SkeinError,
): Script<void> {
  const row = yield* tx.row(runId);
  if (row?.state !== "queued") return;
  if (why === "deadline") {
    yield* endRun(tx, row, { state: "timeout", code: "timeout", error: timeoutText(row) });
    return;
  }
  if (why instanceof SkeinError) {
    const error = `${messageWithoutPaths(why)} ${retryHint(runId)}`;
    yield* endRun(tx, row, { state: "error", code: why.code, error });
    return;
  }
  if (isUnreadDelivery(row)) yield* putDeadLetter(tx, row);
  const error = `Session ${row.session.sessionId} no longer exists.`;
  yield* endRun(tx, row, { state: "error", code: "not_found", error });
}

/**
 * `lost` counts toward the maximum number of losses, after which the run ends. `deferred` restarts the time limit
 * unless the run's input has been written.
 */
type RequeueReason = "lost" | "released" | "deferred";

/** Returns a run that the caller owns to the queue. */
export async function requeueHeld(
  ledger: RunLedger,
  held: HeldRun,
  why: RequeueReason = "released",
): Promise<void> {
  await requeue(ledger, await ledger.read((tx) => tx.held(held)), why, () => true);
}

/** Puts a run back in the queue and raises its fence, under the session's lock. */
async function requeue(
  ledger: RunLedger,
  row: RunRow,
  why: RequeueReason,
  isStill: (now: RunRow) => boolean,
  options: Pick<FenceScript, "lockTimeoutMs"> = {},
): Promise<void> {
  const durability = (tx: RunTransaction) => endDurability(tx, row.runId);
  const giveBackIfStill = function* (tx: RunTransaction): Script<boolean> {
    const now = yield* tx.row(row.runId);
    if (now === null || now.fence !== row.fence || now.owner !== row.owner || !isStill(now)) return false;
    yield* giveBack(tx, now, why);
    return true;
  };
  try {
    await ledger.changeUnderLock(row.session, durability, giveBackIfStill, options);
  } catch (error) {
    // If the session does not exist or its log is unreadable, no process can write to the log, so no lock is needed.
    if (!(error instanceof SkeinError) || !["not_found", "unreadable_file"].includes(error.code)) throw error;
    if (!(await ledger.change(durability, row, giveBackIfStill))) throw fenced(row);
  }
}

function* giveBack(tx: RunTransaction, row: RunRow, why: RequeueReason): Script<void> {
  const isLost = why === "lost";
  const next = nextState({ ...row, lost: isLost ? row.lost : 0 }, "lease_lost");
  yield* tx.run("DELETE FROM run_waits WHERE from_run = ? AND ? = 0", row.runId, row.isWoken ? 1 : 0);
  if (next === "error") {
    const lost = row.lost + 1;
    yield* tx.run("UPDATE runs SET lost = ? WHERE run_id = ?", lost, row.runId);
    const error = `The run lost its process ${lost} times. ${retryHint(row.runId)}`;
    yield* endRun(tx, { ...row, lost }, { state: "error", code: lostCode, error });
    return;
  }
  yield* tx.run(
    `UPDATE runs SET state = ?, rank = ?, fence = fence + 1, owner = NULL, lease_until = NULL, resuming = 0,
       lost = lost + ?, deadline = CASE WHEN ? = 1 AND written = 0 THEN NULL ELSE deadline END WHERE run_id = ?`,
    next,
    row.isWoken ? ranks.woken : ranks.recovered,
    isLost ? 1 : 0,
    // Input must not time out before it has been written to the session.
    why === "deferred" ? 1 : 0,
    row.runId,
  );
  const queued = yield* tx.row(row.runId);
  if (queued === null) return;
  if (queued.abortRequested) {
    yield* endRun(tx, queued, { state: "aborted", code: "aborted", ...abortError(queued) });
    return;
  }
  tx.addQueued(row);
  yield* emitChildState(tx, row, "queued");
  yield* refreshQueue(row.session.uid);
}

function isExpired(ledger: RunLedger | RunTransaction, leaseUntil: number): boolean {
  return leaseUntil <= ledger.now() && ledger.options.canTakeOver();
}

/** Returns runs whose owner has died or whose lease has expired. */
function* findLostRuns(
  tx: RunTransaction,
  exceptOf: string | null,
  leftOut: ReadonlySet<string>,
): Script<RunRow[]> {
  const active = yield* tx.all(
    // Without INDEXED BY, SQLite scans all runs to avoid the sort.
    `SELECT run_id, owner, lease_until FROM runs INDEXED BY runs_active WHERE state IN ('running', 'waiting')
     AND owner IS DISTINCT FROM ? ORDER BY seq`,
    exceptOf,
  );
  const gone = new Map<string, boolean>();
  const isGone = (owner: string) => {
    const known = gone.get(owner) ?? tx.options.isGone(owner);
    gone.set(owner, known);
    return known;
  };
  const lost = active.filter(
    ({ owner, lease_until }) => isExpired(tx, Number(lease_until)) || isGone(String(owner)),
  );
  if (lost.length === 0) return [];
  const ids = JSON.stringify(lost.map(({ run_id }) => run_id));
  const rows = yield* tx.rows("run_id IN (SELECT value FROM json_each(?)) ORDER BY seq", ids);
  return rows.filter(({ session }) => !leftOut.has(session.uid) && tx.options.hasStore(session.userId));
}

/** How long a claim or the recovery of a lost run waits for one session's lock file, because all sessions wait with it. */
export const claimLockMs = 1000;

/** The sessions that a pass leaves for later. */
export interface LockedSessions {
  /** The sessions' uids. */
  readonly leftOut: Set<string>;
  /** Called with the uid of each session whose lock file another process did not release in time. */
  onLocked(uid: string): void;
}

/** Leaves a session for later because another process has it locked. */
export function leaveLocked(ledger: RunLedger, { leftOut, onLocked }: LockedSessions, uid: string): void {
  leftOut.add(uid);
  if (ledger.options.hasLockFiles) onLocked(uid);
}

/**
 * Requeues runs whose owner has died or whose lease has expired. If a run's session is locked or its owner turns out to
 * be alive, the run is left for the next pass. Returns the errors.
 */
async function requeueLostRuns(
  ledger: RunLedger,
  exceptOf: string | null,
  locked: LockedSessions,
): Promise<unknown[]> {
  const problems: unknown[] = [];
  for (const row of await ledger.read((tx) => findLostRuns(tx, exceptOf, locked.leftOut))) {
    const isStill = ({ leaseUntil, owner }: RunRow) =>
      owner !== null && (isExpired(ledger, leaseUntil ?? 0) || ledger.options.isGone(owner));
    try {
      await requeue(ledger, row, "lost", isStill, { lockTimeoutMs: claimLockMs });
    } catch (error) {
      const code = error instanceof SkeinError ? error.code : null;
      if (code === "locked") leaveLocked(ledger, locked, row.session.uid);
      else if (code !== "fenced") problems.push(error);
    }
  }
  return problems;
}

/** Whether `settleOverdue` has anything to do. */
export function* isAnyOverdue(
  tx: RunTransaction,
  exceptOf: string | null,
  leftOut: ReadonlySet<string>,
): Script<boolean> {
  if ((yield* findLostRuns(tx, exceptOf, leftOut)).length > 0 || (yield* isBatchDue(tx))) return true;
  return (yield* tx.get(`${returnedReplies} LIMIT 1`)) !== undefined;
}

/** Requeues lost runs, settles returned replies and releases announcements that have waited long enough. */
export async function settleOverdue(
  ledger: RunLedger,
  exceptOf: string | null,
  locked: LockedSessions = { leftOut: new Set(), onLocked: () => undefined },
): Promise<unknown[]> {
  const problems = [
    ...(await requeueLostRuns(ledger, exceptOf, locked)),
    ...(await settleReturnedReplies(ledger)),
  ];
  await releaseDueBatches(ledger);
  return problems;
}

/** How long ended runs are kept. */
const keepMs = 30 * 24 * 60 * 60 * 1000;
/** Rows deleted per sweep. */
const mostForgotten = 500;

export async function sweepAll(ledger: RunLedger): Promise<{ readonly nextAt: number | null }> {
  const problems = await settleOverdue(ledger, null);
  const now = ledger.now();
  for (const row of await ledger.read((tx) => tx.rows("state = 'sleeping' AND wake_at <= ?", now)))
    await ledger.change("synced", row, (tx) => wakeRun(tx, row));
  const overdue = "state = 'queued' AND deadline IS NOT NULL AND deadline <= ?";
  for (const row of await ledger.read((tx) => tx.rows(overdue, now)))
    await endUnclaimed(ledger, row, "deadline");
  for (const approvalId of await ledger.read(listExpiredApprovals))
    await ledger.change("synced", { approvalId }, (tx) => resolveApproval(tx, approvalId, "expired", null));
  if (await ledger.read((tx) => isAnyOld(tx, now - keepMs)))
    await ledger.change("unsynced", null, (tx) => forgetOld(tx, now - keepMs));
  if (problems.length > 0) throw problems[0];
  return { nextAt: await ledger.read(nextTime) };
}

/**
 * Children that have attachments or are not archived yet are kept longer, as is lost input that has not been retried.
 */
const oldRuns = `SELECT seq FROM runs WHERE ended_at IS NOT NULL AND ended_at < ?
  AND (lost <= ${mostLost} OR retried_as IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM children WHERE children.run_id = runs.run_id AND tidied_at IS NULL
    AND (attachments IS NOT NULL OR (cleanup = 'keep' AND archive_after IS NOT NULL)))
  ORDER BY ended_at LIMIT ?`;
const oldMessages =
  "SELECT seq FROM outbox WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?";
const oldRoots = "SELECT root FROM budgets WHERE touched_at < ? ORDER BY touched_at LIMIT ?";

function* isAnyOld(tx: RunTransaction, before: number): Script<boolean> {
  for (const sql of [oldRuns, oldMessages, oldRoots])
    if ((yield* tx.get(sql, before, 1)) !== undefined) return true;
  return false;
}

function* forgetOld(tx: RunTransaction, before: number): Script<void> {
  for (const { seq } of yield* tx.all(oldRuns, before, mostForgotten)) yield* deleteRun(tx, Number(seq));
  for (const { seq } of yield* tx.all(oldMessages, before, mostForgotten))
    yield* tx.run("DELETE FROM outbox WHERE seq = ?", Number(seq));
  for (const { root } of yield* tx.all(oldRoots, before, mostForgotten))
    if (!(yield* forgetRoot(tx, String(root))))
      yield* tx.run("UPDATE budgets SET touched_at = ? WHERE root = ?", before + keepMs, String(root));
}

/** Deletes a run and all rows that refer to it. */
export function* deleteRun(tx: RunTransaction, seq: number): Script<void> {
  const runId = String((yield* tx.get("SELECT run_id FROM runs WHERE seq = ?", seq))?.run_id);
  for (const table of ["approvals", "run_partials", "run_replies", "children"])
    yield* tx.run(`DELETE FROM ${table} WHERE run_id = ?`, runId);
  yield* tx.run("DELETE FROM run_waits WHERE from_run = ? OR to_run = ?", runId, runId);
  for (const table of ["run_inputs", "runs"]) yield* tx.run(`DELETE FROM ${table} WHERE seq = ?`, seq);
}

/** Deletes a request's budget. If the request still has runs, keeps the budget and returns `false`. */
export function* forgetRoot(tx: RunTransaction, root: string): Script<boolean> {
  if ((yield* tx.get("SELECT 1 FROM runs WHERE root = ? LIMIT 1", root)) !== undefined) return false;
  yield* tx.run("DELETE FROM budget_pairs WHERE root = ?", root);
  yield* tx.run("DELETE FROM budgets WHERE root = ?", root);
  return true;
}

const nextLease =
  "SELECT min(lease_until) AS at FROM runs INDEXED BY runs_active WHERE state IN ('running', 'waiting')";

function* nextTime(tx: RunTransaction): Script<number | null> {
  const times = [yield* nextBatchAt(tx)];
  for (const sql of [
    ...(tx.options.canTakeOver() ? [nextLease] : []),
    "SELECT min(wake_at) AS at FROM runs WHERE state = 'sleeping'",
    "SELECT min(deadline) AS at FROM runs WHERE state = 'queued' AND deadline IS NOT NULL",
    "SELECT min(expires_at) AS at FROM approvals WHERE answer IS NULL",
  ])
    times.push(numberOrNull((yield* tx.get(sql))?.at));
  const known = times.filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}
