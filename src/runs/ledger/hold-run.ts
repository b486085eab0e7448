import type { DeliveryTarget, HeldRun, Run, WaitEntered } from "../contract.ts";
import { isOpenRun, nextState } from "../states.ts";
import { emitChildState } from "./children.ts";
import { findMissingHere } from "./claim-eligibility.ts";
import { wakeRun } from "./end-run.ts";
import { findWaits } from "./query-runs.ts";
import { refreshQueue, takenSlots } from "./ready-queue.ts";
import type { RunLedger, RunRow } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/** Operations that a run's owner performs between claim and end. Each runs in a transaction. */

export function isHeld(ledger: RunLedger, { runId, fence }: HeldRun): boolean {
  const sql = "SELECT 1 FROM runs WHERE run_id = ? AND fence = ? AND state IN ('running', 'waiting')";
  return ledger.get(sql, runId, fence) !== undefined;
}

/** Returns the owner's runs with a pending stop request. */
export function listStopRequests(ledger: RunLedger, owner: string): string[] {
  const sql = "SELECT run_id FROM runs WHERE state IN ('running', 'waiting') AND abort = 1 AND owner = ?";
  return ledger.all(sql, owner).map(({ run_id }) => String(run_id));
}

export function savePartial(ledger: RunLedger, held: HeldRun, text: string | null): void {
  const { runId } = ledger.held(held);
  if (text === null) ledger.run("DELETE FROM run_partials WHERE run_id = ?", runId);
  else ledger.run("INSERT OR REPLACE INTO run_partials (run_id, text) VALUES (?, ?)", runId, text);
}

export function readPartial(ledger: RunLedger, runId: string): string | null {
  const row = ledger.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
  return row === undefined ? null : String(row.text);
}

export function renewLeases(ledger: RunLedger, owner: string, held: readonly HeldRun[]): string[] {
  const until = ledger.now() + ledger.options.leaseMs;
  const sql = "UPDATE runs SET lease_until = ? WHERE run_id = ? AND fence = ? AND owner = ?";
  return held
    .filter(({ runId, fence }) => ledger.run(sql, until, runId, fence, owner) === 0)
    .map(({ runId }) => runId);
}

/** Records that the run's input is in the session. For a woken run, this is the input it was sleeping for. */
export function markWritten(ledger: RunLedger, held: HeldRun): void {
  const { runId, isWoken } = ledger.heldLine(held);
  ledger.run("UPDATE runs SET written = 1, woken = 0 WHERE run_id = ?", runId);
  if (isWoken) ledger.run("DELETE FROM run_waits WHERE from_run = ?", runId);
}

/** Input with an output schema, or with a delivery target that differs from the running turn's, needs its own turn. */
export function listSteerable(ledger: RunLedger, held: HeldRun): Run[] {
  const { uid } = ledger.heldLine(held);
  const rows = ledger
    .rows(
      // Includes input that a lost owner of this run had reserved but not merged.
      `uid = ? AND state = 'queued' AND mode = 'steer' AND silent = 0 AND started_at IS NULL
       AND (kept_for IS NULL OR (kept_for = ? AND arrival_of IS NULL)) ORDER BY seq`,
      uid,
      held.runId,
    )
    .filter((row) => row.options.outputSchema === undefined && findMissingHere(ledger, row) === null);
  if (rows.length === 0) return [];
  const { deliverTo } = ledger.held(held).options;
  return rows.filter(({ options }) => isAnsweredBy(options.deliverTo, deliverTo)).map(publicRun);
}

/** Whether an answer delivered to `given` reaches `asked` too. An answer without a target is not delivered. */
function isAnsweredBy(asked: DeliveryTarget | undefined, given: DeliveryTarget | undefined): boolean {
  const isSame = (name: keyof DeliveryTarget) => asked?.[name] === given?.[name];
  return asked === undefined || (["channel", "to", "accountId", "threadId"] as const).every(isSame);
}

/** A turn with several inputs uses the root of the first input and the highest hop count. */
export function mergeInput(ledger: RunLedger, held: HeldRun, runId: string): void {
  const into = ledger.held(held);
  const row = ledger.row(runId);
  if (row === null || row.session.uid !== into.session.uid) return;
  const next = nextState(row, "steered");
  if (next === null) return;
  ledger.run(
    "UPDATE runs SET state = ?, merged_into = ?, written = 1, kept_for = NULL, not_before = NULL WHERE run_id = ?",
    next,
    into.runId,
    runId,
  );
  ledger.run("UPDATE runs SET hops = max(hops, ?) WHERE run_id = ?", row.root.hops, into.runId);
  const kept = "SELECT 1 FROM runs WHERE kept_for = ? AND state = 'queued' LIMIT 1";
  if (row.keptFor === into.runId && ledger.get(kept, into.runId) === undefined) markWritten(ledger, held);
  refreshQueue(ledger, row.session.uid);
  ledger.addEvent("run.steered", row.session, runId, { mergedInto: into.runId });
}

export function enterWait(
  ledger: RunLedger,
  held: HeldRun,
  wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
): WaitEntered {
  const row = ledger.held(held);
  const runIds = wait.runIds ?? [];
  // Several tool calls in one message can wait at the same time. The first one has already freed the slot.
  const next = row.state === "waiting" ? row.state : nextState(row, "wait");
  const cycle = findCycle(row.runId, runIds, (runId) => findWaits(ledger, runId)?.runIds ?? []);
  if (cycle !== null) return { entered: false, cycle };
  for (const runId of runIds) {
    ledger.run("INSERT OR IGNORE INTO run_waits (from_run, to_run) VALUES (?, ?)", row.runId, runId);
  }
  ledger.run("UPDATE runs SET state = ? WHERE run_id = ?", next, row.runId);
  const which = wait.runIds === undefined ? {} : { runIds };
  ledger.addEvent("run.waiting", row.session, row.runId, { for: wait.for, ...which });
  return { entered: true };
}

/** Gives a resuming run a slot ahead of new claims. Returns `false` if no slot is free. */
export function resumeRun(ledger: RunLedger, held: HeldRun): boolean {
  const row = ledger.held(held);
  const next = nextState(row, "wait_over");
  const isFree =
    row.isSilent || takenSlots(ledger, "only running")[row.lane] < ledger.options.lanes[row.lane];
  if (!isFree) {
    ledger.run("UPDATE runs SET resuming = 1 WHERE run_id = ?", row.runId);
    return false;
  }
  ledger.run("UPDATE runs SET state = ?, resuming = 0 WHERE run_id = ?", next, row.runId);
  ledger.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  ledger.addEvent("run.resumed", row.session, row.runId, {});
  return true;
}

export function sleepRun(
  ledger: RunLedger,
  held: HeldRun,
  sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
): "sleeping" | "queued" | "nothing_to_wait_for" {
  const row = ledger.held(held);
  const next = nextState(row, "yield");
  const targets = [...new Set(sleep.waitFor ?? listStartedRuns(ledger, row))].filter(
    (each) => each !== row.runId,
  );
  const found = targets.map((runId) => ({ runId, ...findAwaited(ledger, row, runId) }));
  const wanted = found.filter(({ isOpen, arrivals }) => isOpen || arrivals.length > 0);
  if (wanted.length === 0) return "nothing_to_wait_for";
  const now = ledger.now();
  const wakeAt = Math.min(sleep.wakeAt, now + ledger.options.yieldTimeoutMs);
  ledger.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  for (const { runId, arrivals } of wanted) {
    const sql = "INSERT INTO run_waits (from_run, to_run, arrived) VALUES (?, ?, ?)";
    ledger.run(sql, row.runId, runId, arrivals.length > 0 ? 1 : 0);
    for (const seq of arrivals)
      ledger.run("UPDATE runs SET kept_for = ?, not_before = NULL WHERE seq = ?", row.runId, seq);
  }
  ledger.run(
    `UPDATE runs SET state = ?, owner = NULL, lease_until = NULL, slept_at = ?, wake_at = ?, woken = 0, written = 1
     WHERE run_id = ?`,
    next,
    now,
    wakeAt,
    row.runId,
  );
  const waitingFor = wanted.filter(({ arrivals }) => arrivals.length === 0).map(({ runId }) => runId);
  ledger.addEvent("run.sleeping", row.session, row.runId, { waitingFor, wakeAt });
  emitChildState(ledger, row, "sleeping");
  refreshQueue(ledger, row.session.uid);
  const asleep = ledger.row(row.runId);
  if (waitingFor.length > 0 || asleep === null) return "sleeping";
  wakeRun(ledger, asleep);
  return "queued";
}

function listStartedRuns(ledger: RunLedger, row: RunRow): string[] {
  const started = ledger.all("SELECT run_id FROM runs WHERE started_by = ? ORDER BY seq", row.runId);
  return started.map(({ run_id }) => String(run_id));
}

/** Returns whether a run is still open and which of its announcements are already in the inbox. */
function findAwaited(ledger: RunLedger, row: RunRow, runId: string): { isOpen: boolean; arrivals: number[] } {
  const target = ledger.row(runId);
  if (target !== null && target.user !== row.user) return { isOpen: false, arrivals: [] };
  const sql =
    "SELECT seq FROM runs WHERE arrival_of = ? AND uid = ? AND state = 'queued' AND kept_for IS NULL AND started_at IS NULL";
  const arrivals = ledger.all(sql, runId, row.session.uid).map(({ seq }) => Number(seq));
  return { isOpen: target !== null && isOpenRun(target), arrivals };
}

/**
 * Detects a deadlock before a wait begins. `waitsFor` returns the runs that a run is currently waiting for. Returns the
 * cycle, from the run back to itself, or `null` if there is none.
 */
export function findCycle(
  from: string,
  targets: readonly string[],
  waitsFor: (runId: string) => readonly string[],
): readonly string[] | null {
  const cameFrom = new Map<string, string>();
  const open: string[] = [];
  const visit = (runId: string, before: string) => {
    if (cameFrom.has(runId)) return;
    cameFrom.set(runId, before);
    open.push(runId);
  };
  for (const target of targets) visit(target, from);
  for (let runId = open.shift(); runId !== undefined; runId = open.shift()) {
    if (runId === from) return pathBack(from, cameFrom);
    for (const next of waitsFor(runId)) visit(next, runId);
  }
  return null;
}

function pathBack(from: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [from];
  let runId = cameFrom.get(from);
  while (runId !== undefined && runId !== from) {
    path.unshift(runId);
    runId = cameFrom.get(runId);
  }
  return [from, ...path];
}
