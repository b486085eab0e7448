import { messageWithoutPaths, SkeinError } from "../../core/errors.ts";
import type { HeldRun } from "../contract.ts";
import { ranks } from "../lanes.ts";
import { lostCode, mostLost, nextState, retryHint, timeoutText } from "../states.ts";
import { listExpiredApprovals, resolveApproval } from "./approvals.ts";
import { emitChildState } from "./children.ts";
import { nextBatchAt, releaseDueBatches } from "./claim-eligibility.ts";
import { abortError, endRun, wakeRun } from "./end-run.ts";
import { isUnreadDelivery, putDeadLetter } from "./outbox.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";
import { fenced, numberOrNull } from "./run-ledger.ts";
import { endDurability, settleReturnedReplies } from "./start-sequel.ts";

/** Ends a queued run that cannot continue, in one transaction. */
export function endUnclaimed(
  ledger: RunLedger,
  row: RunRow,
  why: "deadline" | "not_found" | SkeinError,
): void {
  ledger.change(endDurability(ledger, row.runId), () => endIfQueued(ledger, row, why));
}

function endIfQueued(ledger: RunLedger, { runId }: RunRow, why: "deadline" | "not_found" | SkeinError): void {
  const row = ledger.row(runId);
  if (row?.state !== "queued") return;
  if (why === "deadline") {
    endRun(ledger, row, { state: "timeout", code: "timeout", error: timeoutText(row) });
    return;
  }
  if (why instanceof SkeinError) {
    const error = `${messageWithoutPaths(why)} ${retryHint(runId)}`;
    endRun(ledger, row, { state: "error", code: why.code, error });
    return;
  }
  if (isUnreadDelivery(row)) putDeadLetter(ledger, row);
  const error = `Session ${row.session.sessionId} no longer exists.`;
  endRun(ledger, row, { state: "error", code: "not_found", error });
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
  await requeue(ledger, ledger.held(held), why, () => true);
}

/** Puts a run back in the queue and raises its fence, under the session's lock. */
async function requeue(
  ledger: RunLedger,
  row: RunRow,
  why: RequeueReason,
  isStill: (now: RunRow) => boolean,
): Promise<void> {
  const act = () =>
    ledger.change(endDurability(ledger, row.runId), () => {
      const now = ledger.row(row.runId);
      if (now === null || now.fence !== row.fence || now.owner !== row.owner || !isStill(now)) return false;
      giveBack(ledger, now, why);
      return true;
    });
  try {
    await ledger.options.underLock(row.session, act);
  } catch (error) {
    // If the session does not exist or its log is unreadable, no process can write to the log, so no lock is needed.
    if (!(error instanceof SkeinError) || !["not_found", "unreadable_file"].includes(error.code)) throw error;
    if (!act()) throw fenced(row);
  }
}

function giveBack(ledger: RunLedger, row: RunRow, why: RequeueReason): void {
  const isLost = why === "lost";
  const next = nextState({ ...row, lost: isLost ? row.lost : 0 }, "lease_lost");
  ledger.run("DELETE FROM run_waits WHERE from_run = ? AND ? = 0", row.runId, row.isWoken ? 1 : 0);
  if (next === "error") {
    const lost = row.lost + 1;
    ledger.run("UPDATE runs SET lost = ? WHERE run_id = ?", lost, row.runId);
    const error = `Its process was lost ${lost} times. ${retryHint(row.runId)}`;
    endRun(ledger, { ...row, lost }, { state: "error", code: lostCode, error });
    return;
  }
  ledger.run(
    `UPDATE runs SET state = ?, rank = ?, fence = fence + 1, owner = NULL, lease_until = NULL, resuming = 0,
       lost = lost + ?, deadline = CASE WHEN ? AND written = 0 THEN NULL ELSE deadline END WHERE run_id = ?`,
    next,
    row.isWoken ? ranks.woken : ranks.recovered,
    isLost ? 1 : 0,
    // Input must not time out before it has been written to the session.
    why === "deferred" ? 1 : 0,
    row.runId,
  );
  const queued = ledger.row(row.runId);
  if (queued === null) return;
  if (queued.abortRequested) {
    endRun(ledger, queued, { state: "aborted", code: "aborted", ...abortError(queued) });
    return;
  }
  ledger.addQueued(row);
  emitChildState(ledger, row, "queued");
  refreshQueue(ledger, row.session.uid);
}

/** Returns runs whose owner has died or whose lease has expired. */
function findLostRuns(ledger: RunLedger, exceptOf: string | null): RunRow[] {
  const active = ledger.all(
    // Without INDEXED BY, SQLite scans all runs to avoid the sort.
    `SELECT run_id, owner, lease_until FROM runs INDEXED BY runs_active WHERE state IN ('running', 'waiting')
     AND owner IS NOT ? ORDER BY seq`,
    exceptOf,
  );
  const gone = new Map<string, boolean>();
  const isGone = (owner: string) => {
    const known = gone.get(owner) ?? ledger.options.isGone(owner);
    gone.set(owner, known);
    return known;
  };
  return active
    .filter(({ owner, lease_until }) => Number(lease_until) <= ledger.now() || isGone(String(owner)))
    .flatMap(({ run_id }) => ledger.row(String(run_id)) ?? [])
    .filter(({ session }) => ledger.options.hasStore(session.userId));
}

/**
 * Requeues runs whose owner has died or whose lease has expired. If a run's session is locked or its owner turns out to
 * be alive, the run is left for the next pass. Returns the errors.
 */
export async function requeueLostRuns(ledger: RunLedger, exceptOf: string | null): Promise<unknown[]> {
  const problems: unknown[] = [];
  for (const row of findLostRuns(ledger, exceptOf)) {
    const isStill = ({ leaseUntil, owner }: RunRow) =>
      owner !== null && ((leaseUntil ?? 0) <= ledger.now() || ledger.options.isGone(owner));
    await requeue(ledger, row, "lost", isStill).catch((error: unknown) => {
      if (!(error instanceof SkeinError) || !["fenced", "locked"].includes(error.code)) problems.push(error);
    });
  }
  return problems;
}

/** How long ended runs are kept. */
const keepMs = 30 * 24 * 60 * 60 * 1000;
/** Rows deleted per sweep. */
const mostForgotten = 500;

export async function sweepAll(ledger: RunLedger): Promise<{ readonly nextAt: number | null }> {
  const problems = [...(await requeueLostRuns(ledger, null)), ...(await settleReturnedReplies(ledger))];
  const now = ledger.now();
  const sleepers = () => ledger.rows("state = 'sleeping' AND wake_at <= ?", now);
  if (sleepers().length > 0) ledger.change("synced", () => sleepers().map((row) => wakeRun(ledger, row)));
  for (const row of ledger.rows("state = 'queued' AND deadline IS NOT NULL AND deadline <= ?", now))
    endUnclaimed(ledger, row, "deadline");
  releaseDueBatches(ledger);
  for (const approvalId of listExpiredApprovals(ledger)) {
    ledger.change("synced", () => resolveApproval(ledger, approvalId, "expired", null));
  }
  forget(ledger, now - keepMs);
  if (problems.length > 0) throw problems[0];
  return { nextAt: nextTime(ledger) };
}

function forget(ledger: RunLedger, before: number): void {
  // Children that have attachments or are not archived yet are kept longer, as is lost input that has not been retried.
  const old = `SELECT seq FROM runs WHERE ended_at IS NOT NULL AND ended_at < ?
    AND (lost <= ${mostLost} OR retried_as IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM children WHERE children.run_id = runs.run_id AND tidied_at IS NULL
      AND (attachments IS NOT NULL OR (cleanup = 'keep' AND archive_after IS NOT NULL)))
    ORDER BY ended_at LIMIT ?`;
  const oldOut =
    "SELECT seq FROM outbox WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?";
  const oldRoots = "SELECT root FROM budgets WHERE touched_at < ? ORDER BY touched_at LIMIT ?";
  const isThere = (sql: string) => ledger.get(sql, before, 1) !== undefined;
  if (![old, oldOut, oldRoots].some(isThere)) return;
  ledger.change("unsynced", () => {
    for (const { seq } of ledger.all(old, before, mostForgotten)) forgetRun(ledger, Number(seq));
    for (const { seq } of ledger.all(oldOut, before, mostForgotten))
      ledger.run("DELETE FROM outbox WHERE seq = ?", Number(seq));
    for (const { root } of ledger.all(oldRoots, before, mostForgotten))
      if (!forgetRoot(ledger, String(root)))
        ledger.run("UPDATE budgets SET touched_at = ? WHERE root = ?", before + keepMs, String(root));
  });
}

/** Deletes a run and all rows that refer to it. */
export function forgetRun(ledger: RunLedger, seq: number): void {
  const runId = String(ledger.get("SELECT run_id FROM runs WHERE seq = ?", seq)?.run_id);
  for (const table of ["approvals", "run_partials", "run_replies", "children"])
    ledger.run(`DELETE FROM ${table} WHERE run_id = ?`, runId);
  ledger.run("DELETE FROM run_waits WHERE from_run = ? OR to_run = ?", runId, runId);
  for (const table of ["run_inputs", "runs"]) ledger.run(`DELETE FROM ${table} WHERE seq = ?`, seq);
}

/** Deletes a request's budget. If the request still has runs, keeps the budget and returns `false`. */
export function forgetRoot(ledger: RunLedger, root: string): boolean {
  if (ledger.get("SELECT 1 FROM runs WHERE root = ? LIMIT 1", root) !== undefined) return false;
  ledger.run("DELETE FROM budget_pairs WHERE root = ?", root);
  ledger.run("DELETE FROM budgets WHERE root = ?", root);
  return true;
}

function nextTime(ledger: RunLedger): number | null {
  const times = [
    "SELECT min(lease_until) AS at FROM runs INDEXED BY runs_active WHERE state IN ('running', 'waiting')",
    "SELECT min(wake_at) AS at FROM runs WHERE state = 'sleeping'",
    "SELECT min(deadline) AS at FROM runs WHERE state = 'queued' AND deadline IS NOT NULL",
    "SELECT min(expires_at) AS at FROM approvals WHERE answer IS NULL",
  ].map((sql) => numberOrNull(ledger.get(sql)?.at));
  const known = [...times, nextBatchAt(ledger)].filter((at) => at !== null);
  return known.length === 0 ? null : Math.min(...known);
}
