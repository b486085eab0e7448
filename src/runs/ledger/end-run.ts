import { overSpent } from "../budget.ts";
import type { EndState, Outcome, RunState } from "../contract.ts";
import { ranks } from "../lanes.ts";
import type { RunEvent } from "../states.ts";
import { isEnded, nextState } from "../states.ts";
import { figuresOrNone } from "./budgets.ts";
import { emitChildState } from "./children.ts";
import { releaseCompleteBatch } from "./claim-eligibility.ts";
import { leaveReplies, returnReplies, startSequel } from "./follow-run.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";

/**
 * How runs end, and what that sets off: merged runs end with them, sequels take their course, sleepers wake, kept input
 * goes free.
 */

const eventOf = {
  ok: "answer",
  error: "error",
  timeout: "deadline",
  aborted: "abort",
} as const satisfies Record<EndState, RunEvent>;

/** Ends a run, in the transaction that it is called in. `false`: it had ended before. */
export function endRun(ledger: RunLedger, row: RunRow, outcome: Outcome): boolean {
  if (nextState(row, eventOf[outcome.state]) === null) return false;
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
  // A run that ends well has written every result that it got.
  if (state !== "ok") returnReplies(ledger, row.runId);
  return true;
}

/** All that its end means to others. What it says comes first: who sleeps for it is to find that. */
function settleEnd(ledger: RunLedger, ended: RunRow & { readonly outcome: Outcome }): void {
  startSequel(ledger, ended, ended.outcome);
  releaseCompleteBatch(ledger, ended);
  resolveWaitsFor(ledger, ended.runId);
}

/** Ends what nobody owns, and asks the owner of the rest to. Gives the state that it has then; `null`: unknown. */
export function abortRun(ledger: RunLedger, runId: string, reason: string | undefined): RunState | null {
  const row = ledger.row(runId);
  if (row === null) return null;
  if (row.state === "queued" || row.state === "sleeping") {
    const error = reason === undefined ? {} : { error: reason };
    endRun(ledger, row, { state: "aborted", code: "aborted", ...error });
    return "aborted";
  }
  // Input that went into another turn shares its outcome: that turn is what is to end.
  if (row.mergedInto !== null && row.outcome === null) abortRun(ledger, row.mergedInto, reason);
  const sql = "UPDATE runs SET abort = 1, abort_reason = ? WHERE run_id = ?";
  if (!isEnded(row.state)) ledger.run(sql, reason ?? null, runId);
  return row.state;
}

/** Those that were merged into it share its outcome. */
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

/** What was kept for a run that takes it no more starts runs of its own. */
function releaseKeptInput(ledger: RunLedger, row: RunRow): void {
  const kept = ledger.rows("kept_for = ? AND state = 'queued'", row.runId);
  for (const each of kept) {
    ledger.run("UPDATE runs SET kept_for = NULL WHERE run_id = ?", each.runId);
    ledger.addEvent("run.queued", each.session, each.runId, { lane: each.lane, kind: each.kind });
  }
  if (kept.length > 0) refreshQueue(ledger, row.session.uid);
}

/** Nobody will hear from a run that has ended without an announcement: whoever sleeps for it need not go on. */
function resolveWaitsFor(ledger: RunLedger, runId: string): void {
  markArrived(ledger, runId, "ended");
}

/** 0: still open. 1: its announcement is there. 2: it ended without one. */
export const arrivalMarks = { open: 0, announced: 1, ended: 2 } as const;

/** What sleepers wait for is there; those that wait for nothing more wake. */
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

/** Back into the queue; the time asleep does not count. Where its root has nothing left, it ends. */
export function wakeRun(ledger: RunLedger, { runId }: RunRow): void {
  const row = ledger.row(runId);
  // Waking one may end it, and that may wake or end another of those that were found asleep together.
  if (row?.state !== "sleeping") return;
  const now = ledger.now();
  const refusal = overSpent(figuresOrNone(ledger, row.root.rootId), ledger.options.limits);
  if (refusal !== null) {
    const { limit, figure, allowed } = refusal;
    const error = `Over the budget of its request: ${limit} is ${figure}, and ${allowed} is allowed.`;
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
  ledger.addEvent("run.queued", row.session, row.runId, { lane: row.lane, kind: row.kind });
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
