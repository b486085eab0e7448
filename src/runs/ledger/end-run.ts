import type { AcceptRequest, EndState, HeldRun, OutboxRequest, Outcome, RunState } from "../contract.ts";
import { ranks } from "../lanes.ts";
import type { RunEvent } from "../states.ts";
import { isEnded, nextState } from "../states.ts";
import { figuresOrNone, overSpent } from "./budgets.ts";
import { emitChildState } from "./children.ts";
import { releaseCompleteBatch } from "./claim-eligibility.ts";
import { putOutbox } from "./outbox.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";
import { fenced } from "./run-ledger.ts";
import { endDurability, leaveReplies, returnReplies, startSequel } from "./start-sequel.ts";

/** Ends a run on behalf of its owner, in one transaction. Returns the outcome with which the run has ended. */
export function endHeldRun(
  ledger: RunLedger,
  held: HeldRun,
  outcome: Outcome,
  {
    deliver = [],
    outbox = [],
  }: { readonly deliver?: readonly AcceptRequest[]; readonly outbox?: readonly OutboxRequest[] } = {},
): Outcome {
  const hasDeliveries = deliver.length + outbox.length > 0;
  return ledger.change(hasDeliveries ? "synced" : endDurability(ledger, held.runId), () => {
    const row = ledger.row(held.runId);
    if (row !== null && row.fence === held.fence && row.endedAt !== null) return row.outcome ?? outcome;
    if (row === null || row.fence !== held.fence || row.owner === null) throw fenced(row);
    if (row.abortRequested && outcome.state === "ok") {
      // The abort has been acknowledged, so the run must not succeed and its reply must not be delivered.
      const aborted: Outcome = { ...outcome, state: "aborted", code: "aborted", ...abortError(row) };
      endRun(ledger, row, aborted);
      return aborted;
    }
    // Must happen before the run ends, because ending it wakes sleepers, which read these rows.
    for (const each of deliver) ledger.accept({ ...each, isDelivery: true });
    for (const each of outbox) putOutbox(ledger, each);
    endRun(ledger, row, outcome);
    return outcome;
  });
}

export function abortError({ abortReason }: RunRow): { error?: string } {
  return abortReason === null ? {} : { error: abortReason };
}

const eventOf = {
  ok: "answer",
  error: "error",
  timeout: "deadline",
  aborted: "abort",
} as const satisfies Record<EndState, RunEvent>;

/**
 * Ends a run within the caller's transaction. Also ends merged runs, starts the sequel, wakes runs that are sleeping
 * until this one ends, and releases input that was kept for it. Does nothing if the run has already ended.
 */
export function endRun(ledger: RunLedger, row: RunRow, outcome: Outcome): void {
  if (nextState(row, eventOf[outcome.state]) === null) return;
  const now = ledger.now();
  ledger.run(
    `UPDATE runs SET state = ?, outcome = ?, ended_at = ?, owner = NULL, lease_until = NULL, resuming = 0, woken = 0,
       kept_for = NULL, wake_at = NULL, not_before = NULL WHERE run_id = ?`,
    outcome.state,
    JSON.stringify(outcome),
    now,
    row.runId,
  );
  ledger.run("DELETE FROM run_partials WHERE run_id = ?", row.runId);
  ledger.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  expireApprovals(ledger, row);
  const { code = null, error = null } = outcome;
  ledger.addEvent("run.ended", row.session, row.runId, { state: outcome.state, code, error });
  emitChildState(ledger, row, outcome.state);
  leaveReplies(ledger, row.runId);
  releaseKeptInput(ledger, row);
  endMerged(ledger, row, outcome, now);
  refreshQueue(ledger, row.session.uid);
  const { state } = outcome;
  settleEnd(ledger, { ...row, state, outcome, endedAt: now, owner: null, leaseUntil: null, keptFor: null });
  // A successful run has written every reply it took.
  if (state !== "ok") returnReplies(ledger, row.runId);
}

/** Starts the sequel before waking runs, because a woken run reads it. */
function settleEnd(ledger: RunLedger, ended: RunRow & { readonly outcome: Outcome }): void {
  startSequel(ledger, ended, ended.outcome);
  releaseCompleteBatch(ledger, ended);
  // No announcement will follow, so a run that is sleeping until this one ends stops waiting for it.
  markArrived(ledger, ended.runId, "ended");
}

/**
 * If a run has no owner, ends it. Otherwise, asks the owner to end it. Returns the resulting state, or `null` if there
 * is no such run.
 */
export function abortRun(ledger: RunLedger, runId: string, reason: string | undefined): RunState | null {
  const row = ledger.row(runId);
  if (row === null) return null;
  const taker = row.keptFor === null || row.arrivalOf !== null ? null : ledger.row(row.keptFor);
  // A turn is writing this input, so that turn is aborted, as it is for merged input.
  if (taker?.state === "running" || taker?.state === "waiting") {
    abortRun(ledger, taker.runId, reason);
    return row.state;
  }
  if (row.state === "queued" || row.state === "sleeping") {
    const error = reason === undefined ? {} : { error: reason };
    endRun(ledger, row, { state: "aborted", code: "aborted", ...error });
    return "aborted";
  }
  // Merged input shares the outcome of the turn it joined, so that turn is aborted.
  if (row.mergedInto !== null && row.outcome === null) abortRun(ledger, row.mergedInto, reason);
  const sql = "UPDATE runs SET abort = 1, abort_reason = ? WHERE run_id = ?";
  if (!isEnded(row.state)) ledger.run(sql, reason ?? null, runId);
  return row.state;
}

/** Ends the runs that were merged into a run, with the same outcome. */
function endMerged(ledger: RunLedger, into: RunRow, outcome: Outcome, now: number): void {
  for (const merged of ledger.rows("merged_into = ? AND ended_at IS NULL", into.runId)) {
    const sql = "UPDATE runs SET outcome = ?, ended_at = ? WHERE run_id = ?";
    ledger.run(sql, JSON.stringify(outcome), now, merged.runId);
    const { code = null, error = null } = outcome;
    ledger.addEvent("run.ended", merged.session, merged.runId, {
      state: "merged",
      code,
      error,
      mergedInto: into.runId,
    });
    emitChildState(ledger, merged, outcome.state);
    const { usage, startedAt } = into;
    settleEnd(ledger, { ...merged, usage, startedAt, outcome, endedAt: now });
  }
}

/** Gives kept input its own turn once the run it was kept for can no longer read it. */
function releaseKeptInput(ledger: RunLedger, row: RunRow): void {
  const kept = ledger.rows("kept_for = ? AND state = 'queued'", row.runId);
  for (const each of kept) {
    ledger.run("UPDATE runs SET kept_for = NULL WHERE run_id = ?", each.runId);
    ledger.addQueued(each);
  }
  if (kept.length > 0) refreshQueue(ledger, row.session.uid);
}

/**
 * Values of `run_waits.arrived`. `announced` means that the run's announcement has arrived. `ended` means that the run
 * ended without one.
 */
export const arrivalMarks = { open: 0, announced: 1, ended: 2 } as const;

/** Ends all waits for a run, and wakes sleeping runs that have nothing else to wait for. */
export function markArrived(ledger: RunLedger, runId: string, how: "announced" | "ended"): void {
  const sleepers = ledger.rows(
    "state = 'sleeping' AND run_id IN (SELECT from_run FROM run_waits WHERE to_run = ? AND arrived = 0)",
    runId,
  );
  ledger.run("UPDATE run_waits SET arrived = ? WHERE to_run = ? AND arrived = 0", arrivalMarks[how], runId);
  for (const sleeper of sleepers) {
    const open = "SELECT 1 FROM run_waits WHERE from_run = ? AND arrived = 0 LIMIT 1";
    if (ledger.get(open, sleeper.runId) === undefined) wakeRun(ledger, sleeper);
  }
}

/**
 * Requeues a sleeping run. Time spent asleep does not count toward its limit. Ends the run if its root has used up its
 * budget.
 */
export function wakeRun(ledger: RunLedger, { runId }: RunRow): void {
  const row = ledger.row(runId);
  // Waking one run can end it, and this can in turn wake or end another run that the caller found asleep.
  if (row?.state !== "sleeping") return;
  const now = ledger.now();
  const refusal = overSpent(figuresOrNone(ledger, row.root.rootId), ledger.options.limits);
  if (refusal !== null) {
    const { limit, figure, allowed } = refusal;
    const error = `Its request exceeded the limit for ${limit}: ${figure} of at most ${allowed}.`;
    endRun(ledger, row, { state: "error", code: "budget_exceeded", error });
    return;
  }
  const asleep = now - (row.sleptAt ?? now);
  const deadline = row.deadline === null ? null : row.deadline + asleep;
  ledger.run(
    `UPDATE runs SET state = ?, rank = ?, woken = 1, deadline = ?, slept_at = NULL, wake_at = NULL WHERE run_id = ?`,
    nextState(row, "wake"),
    ranks.woken,
    deadline,
    row.runId,
  );
  ledger.addQueued(row);
  emitChildState(ledger, row, "queued");
  refreshQueue(ledger, row.session.uid);
}

function expireApprovals(ledger: RunLedger, row: RunRow): void {
  const open = ledger.all("SELECT approval_id FROM approvals WHERE run_id = ? AND answer IS NULL", row.runId);
  for (const { approval_id } of open) {
    const approvalId = String(approval_id);
    const sql = "UPDATE approvals SET answer = 'expired', resolved_at = ? WHERE approval_id = ?";
    ledger.run(sql, ledger.now(), approvalId);
    ledger.addEvent("approval.resolved", row.session, row.runId, { approvalId, answer: "expired", by: null });
  }
}
