import { present } from "../../core/present.ts";
import type { Script } from "../../core/script.ts";
import type { AcceptRequest, EndState, HeldRun, OutboxRequest, Outcome, RunState } from "../contract.ts";
import { ranks } from "../lanes.ts";
import type { RunEvent } from "../states.ts";
import { isEnded, nextState } from "../states.ts";
import { figuresOrNone, overSpent } from "./budgets.ts";
import { emitChildState } from "./children.ts";
import { releaseCompleteBatch } from "./claim-eligibility.ts";
import { putOutbox } from "./outbox.ts";
import { refreshQueue } from "./ready-queue.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { fenced } from "./run-ledger.ts";
import { endDurability, leaveReplies, returnReplies, startSequel } from "./start-sequel.ts";

export interface Deliveries {
  readonly deliver?: readonly AcceptRequest[];
  readonly outbox?: readonly OutboxRequest[];
}

/** Ends a run on behalf of its owner, in one transaction. Returns the outcome with which the run has ended. */
export function endHeldRun(
  ledger: RunLedger,
  held: HeldRun,
  outcome: Outcome,
  { deliver = [], outbox = [] }: Deliveries = {},
): Promise<Outcome> {
  const hasDeliveries = deliver.length + outbox.length > 0;
  const durability = hasDeliveries ? "synced" : (tx: RunTransaction) => endDurability(tx, held.runId);
  return ledger.change(durability, held, (tx) => endIfHeld(tx, held, outcome, { deliver, outbox }));
}

function* endIfHeld(
  tx: RunTransaction,
  held: HeldRun,
  outcome: Outcome,
  { deliver, outbox }: Required<Deliveries>,
): Script<Outcome> {
  const row = yield* tx.row(held.runId);
  if (row !== null && row.fence === held.fence && row.endedAt !== null) return row.outcome ?? outcome;
  if (row === null || row.fence !== held.fence || row.owner === null) throw fenced(row);
  if (row.abortRequested && outcome.state === "ok") {
    // The abort has been acknowledged, so the run must not succeed and its reply must not be delivered.
    const aborted: Outcome = { ...outcome, state: "aborted", code: "aborted", ...abortError(row) };
    yield* endRun(tx, row, aborted);
    return aborted;
  }
  // Must happen before the run ends, because ending it wakes sleepers, which read these rows.
  for (const each of deliver) yield* tx.accept({ ...each, isDelivery: true });
  for (const each of outbox) yield* putOutbox(tx, each);
  yield* endRun(tx, row, outcome);
  return outcome;
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
export function* endRun(tx: RunTransaction, row: RunRow, outcome: Outcome): Script<void> {
  if (nextState(row, eventOf[outcome.state]) === null) return;
  const now = tx.now();
  yield* tx.run(
    `UPDATE runs SET state = ?, outcome = ?, ended_at = ?, owner = NULL, lease_until = NULL, resuming = 0, woken = 0,
       kept_for = NULL, wake_at = NULL, not_before = NULL WHERE run_id = ?`,
    outcome.state,
    JSON.stringify(outcome),
    now,
    row.runId,
  );
  yield* tx.run("DELETE FROM run_partials WHERE run_id = ?", row.runId);
  yield* tx.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  yield* expireApprovals(tx, row);
  const { code = null, error = null } = outcome;
  tx.addEvent("run.ended", row.session, row.runId, {
    ...{ state: outcome.state, code, error, lane: row.lane },
    ...present({ durationMs: row.startedAt === null ? null : Math.max(0, now - row.startedAt) }),
  });
  yield* emitChildState(tx, row, outcome.state);
  yield* leaveReplies(tx, row.runId);
  yield* releaseKeptInput(tx, row);
  yield* endMerged(tx, row, outcome, now);
  yield* refreshQueue(row.session.uid);
  const { state } = outcome;
  yield* settleEnd(tx, {
    ...row,
    state,
    outcome,
    endedAt: now,
    owner: null,
    leaseUntil: null,
    keptFor: null,
  });
  // A successful run has written every reply it took.
  if (state !== "ok") yield* returnReplies(tx, row.runId);
}

/** Starts the sequel before waking runs, because a woken run reads the announcement that the sequel delivers. */
function* settleEnd(tx: RunTransaction, ended: RunRow & { readonly outcome: Outcome }): Script<void> {
  yield* startSequel(tx, ended, ended.outcome);
  yield* releaseCompleteBatch(tx, ended);
  // No announcement will follow, so a run that is sleeping until this one ends stops waiting for it.
  yield* markArrived(tx, ended.runId, "ended");
}

/**
 * If a run has no owner, ends it. Otherwise, asks the owner to end it. Returns the resulting state, or `null` if there
 * is no such run.
 */
export function* abortRun(
  tx: RunTransaction,
  runId: string,
  reason: string | undefined,
): Script<RunState | null> {
  const row = yield* tx.row(runId);
  if (row === null) return null;
  const taker = row.keptFor === null || row.arrivalOf !== null ? null : yield* tx.row(row.keptFor);
  // A turn is writing this input, so that turn is aborted, as it is for merged input.
  if (taker?.state === "running" || taker?.state === "waiting") {
    yield* abortRun(tx, taker.runId, reason);
    return row.state;
  }
  if (row.state === "queued" || row.state === "sleeping") {
    const error = reason === undefined ? {} : { error: reason };
    yield* endRun(tx, row, { state: "aborted", code: "aborted", ...error });
    return "aborted";
  }
  // Merged input shares the outcome of the turn it joined, so that turn is aborted.
  if (row.mergedInto !== null && row.outcome === null) yield* abortRun(tx, row.mergedInto, reason);
  const sql = "UPDATE runs SET abort = 1, abort_reason = ? WHERE run_id = ?";
  if (!isEnded(row.state)) yield* tx.run(sql, reason ?? null, runId);
  return row.state;
}

/** Ends the runs that were merged into a run, with the same outcome. */
function* endMerged(tx: RunTransaction, into: RunRow, outcome: Outcome, now: number): Script<void> {
  for (const merged of yield* tx.rows("merged_into = ? AND ended_at IS NULL", into.runId)) {
    const sql = "UPDATE runs SET outcome = ?, ended_at = ? WHERE run_id = ?";
    yield* tx.run(sql, JSON.stringify(outcome), now, merged.runId);
    const { code = null, error = null } = outcome;
    tx.addEvent("run.ended", merged.session, merged.runId, {
      state: "merged",
      code,
      error,
      lane: merged.lane,
      mergedInto: into.runId,
    });
    yield* emitChildState(tx, merged, outcome.state);
    const { usage, startedAt } = into;
    yield* settleEnd(tx, { ...merged, usage, startedAt, outcome, endedAt: now });
  }
}

/** Lets kept input start a turn once the run that it was kept for can no longer read it. */
function* releaseKeptInput(tx: RunTransaction, row: RunRow): Script<void> {
  const kept = yield* tx.rows("kept_for = ? AND state = 'queued'", row.runId);
  for (const each of kept) {
    yield* tx.run("UPDATE runs SET kept_for = NULL WHERE run_id = ?", each.runId);
    tx.addQueued(each);
  }
  if (kept.length > 0) yield* refreshQueue(row.session.uid);
}

/**
 * Values of `run_waits.arrived`. `announced` means that the run's announcement has arrived. `ended` means that the run
 * ended without one.
 */
export const arrivalMarks = { open: 0, announced: 1, ended: 2 } as const;

/** Ends all waits for a run, and wakes sleeping runs that have nothing else to wait for. */
export function* markArrived(tx: RunTransaction, runId: string, how: "announced" | "ended"): Script<void> {
  const sleepers = yield* tx.rows(
    "state = 'sleeping' AND run_id IN (SELECT from_run FROM run_waits WHERE to_run = ? AND arrived = 0)",
    runId,
  );
  yield* tx.run(
    "UPDATE run_waits SET arrived = ? WHERE to_run = ? AND arrived = 0",
    arrivalMarks[how],
    runId,
  );
  for (const sleeper of sleepers) {
    const open = "SELECT 1 FROM run_waits WHERE from_run = ? AND arrived = 0 LIMIT 1";
    if ((yield* tx.get(open, sleeper.runId)) === undefined) yield* wakeRun(tx, sleeper);
  }
}

/**
 * Requeues a sleeping run. Time spent asleep does not count toward the run's time limit. If the run's root has exceeded
 * its budget, ends the run instead.
 */
export function* wakeRun(tx: RunTransaction, { runId }: RunRow): Script<void> {
  const row = yield* tx.row(runId);
  // Waking one run can end it, and this can in turn wake or end another run that the caller found asleep.
  if (row?.state !== "sleeping") return;
  const now = tx.now();
  const refusal = overSpent(yield* figuresOrNone(tx, row.root.rootId), tx.options.limits);
  if (refusal !== null) {
    const { limit, figure, allowed } = refusal;
    const error = `The run's request exceeded the limit for ${limit}: ${figure} (maximum: ${allowed}).`;
    yield* endRun(tx, row, { state: "error", code: "budget_exceeded", error });
    return;
  }
  const asleep = now - (row.sleptAt ?? now);
  const deadline = row.deadline === null ? null : row.deadline + asleep;
  yield* tx.run(
    `UPDATE runs SET state = ?, rank = ?, woken = 1, deadline = ?, slept_at = NULL, wake_at = NULL WHERE run_id = ?`,
    nextState(row, "wake"),
    ranks.woken,
    deadline,
    row.runId,
  );
  tx.addQueued(row);
  yield* emitChildState(tx, row, "queued");
  yield* refreshQueue(row.session.uid);
}

function* expireApprovals(tx: RunTransaction, row: RunRow): Script<void> {
  const open = yield* tx.all(
    "SELECT approval_id FROM approvals WHERE run_id = ? AND answer IS NULL",
    row.runId,
  );
  for (const { approval_id } of open) {
    const approvalId = String(approval_id);
    const sql = "UPDATE approvals SET answer = 'expired', resolved_at = ? WHERE approval_id = ?";
    yield* tx.run(sql, tx.now(), approvalId);
    tx.addEvent("approval.resolved", row.session, row.runId, { approvalId, answer: "expired", by: null });
  }
}
