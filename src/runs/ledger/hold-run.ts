import type { Script } from "../../core/script.ts";
import { lockFor, queryRow } from "../../core/script.ts";
import type { DeliveryTarget, HeldRun, Run, WaitEntered } from "../contract.ts";
import { isOpenRun, nextState } from "../states.ts";
import { emitChildState } from "./children.ts";
import { findMissingHere } from "./claim-eligibility.ts";
import { abortError, endRun, wakeRun } from "./end-run.ts";
import { findWaits } from "./query-runs.ts";
import { refreshQueue, takenSlots } from "./ready-queue.ts";
import type { RunRow, RunTransaction } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/** Operations that a run's owner performs between claim and end. Each runs in a transaction. */

/** Whether a run still holds its session. */
export function* isHeld({ runId, fence }: HeldRun): Script<boolean> {
  const sql = "SELECT 1 FROM runs WHERE run_id = ? AND fence = ? AND state IN ('running', 'waiting')";
  return (yield* queryRow(sql, runId, fence)) !== undefined;
}

/** Returns which of these runs the owner has lost or has been asked to stop. */
export function* listStopRequests(
  tx: RunTransaction,
  owner: string,
  held: readonly HeldRun[],
): Script<{ readonly lost: readonly string[]; readonly aborted: readonly string[] }> {
  const sql = "SELECT run_id, fence, abort FROM runs WHERE state IN ('running', 'waiting') AND owner = ?";
  const rows = new Map((yield* tx.all(sql, owner)).map((row) => [String(row.run_id), row]));
  const lost = held.filter(({ runId, fence }) => Number(rows.get(runId)?.fence) !== fence);
  const aborted = held.filter((each) => !lost.includes(each) && Number(rows.get(each.runId)?.abort) === 1);
  const idOf = ({ runId }: HeldRun) => runId;
  return { lost: lost.map(idOf), aborted: aborted.map(idOf) };
}

export function* savePartial(tx: RunTransaction, held: HeldRun, text: string | null): Script<void> {
  const { runId } = yield* tx.held(held);
  if (text === null) yield* tx.run("DELETE FROM run_partials WHERE run_id = ?", runId);
  else {
    const sql = `INSERT INTO run_partials (run_id, text) VALUES (?, ?)
      ON CONFLICT (run_id) DO UPDATE SET text = excluded.text`;
    yield* tx.run(sql, runId, text);
  }
}

export function* readPartial(tx: RunTransaction, runId: string): Script<string | null> {
  const row = yield* tx.get("SELECT text FROM run_partials WHERE run_id = ?", runId);
  return row === undefined ? null : String(row.text);
}

export function* renewLeases(tx: RunTransaction, owner: string, held: readonly HeldRun[]): Script<string[]> {
  const until = tx.now() + tx.options.leaseMs;
  const sql = "UPDATE runs SET lease_until = ? WHERE run_id = ? AND fence = ? AND owner = ?";
  const lost: string[] = [];
  for (const { runId, fence } of held)
    if ((yield* tx.run(sql, until, runId, fence, owner)) === 0) lost.push(runId);
  return lost;
}

/** Records that the run's input is in the session. For a woken run, this is the input it was sleeping for. */
export function* markWritten(tx: RunTransaction, held: HeldRun): Script<void> {
  const { runId, isWoken } = yield* tx.heldLine(held);
  yield* tx.run("UPDATE runs SET written = 1, woken = 0 WHERE run_id = ?", runId);
  if (isWoken) yield* tx.run("DELETE FROM run_waits WHERE from_run = ?", runId);
}

/**
 * Lists queued input that the running turn can take. Input with an output schema or with a different delivery target
 * needs a separate turn.
 */
export function* listSteerable(tx: RunTransaction, held: HeldRun): Script<Run[]> {
  const { uid } = yield* tx.heldLine(held);
  const queued = yield* tx.rows(
    // Includes input that a lost owner of this run had reserved but not merged.
    `uid = ? AND state = 'queued' AND mode = 'steer' AND silent = 0 AND started_at IS NULL
     AND (kept_for IS NULL OR (kept_for = ? AND arrival_of IS NULL)) ORDER BY seq`,
    uid,
    held.runId,
  );
  const rows = queued.filter(
    (row) => row.options.outputSchema === undefined && findMissingHere(tx, row) === null,
  );
  if (rows.length === 0) return [];
  const { deliverTo } = (yield* tx.held(held)).options;
  return rows.filter(({ options }) => isAnsweredBy(options.deliverTo, deliverTo)).map(publicRun);
}

/** Whether an answer delivered to `given` reaches `asked` too. An answer without a target is not delivered. */
function isAnsweredBy(asked: DeliveryTarget | undefined, given: DeliveryTarget | undefined): boolean {
  const isSame = (name: keyof DeliveryTarget) => asked?.[name] === given?.[name];
  return asked === undefined || (["channel", "to", "accountId", "threadId"] as const).every(isSame);
}

/**
 * Merges steered input into the held run. A turn with several inputs uses the root of the first input and the highest
 * hop count.
 */
export function* mergeInput(tx: RunTransaction, held: HeldRun, runId: string): Script<void> {
  const into = yield* tx.held(held);
  const row = yield* tx.row(runId);
  if (row === null || row.session.uid !== into.session.uid) return;
  const next = nextState(row, "steered");
  if (next === null) return;
  yield* tx.run(
    "UPDATE runs SET state = ?, merged_into = ?, written = 1, kept_for = NULL, not_before = NULL WHERE run_id = ?",
    next,
    into.runId,
    runId,
  );
  const { hops } = row.root;
  yield* tx.run("UPDATE runs SET hops = ? WHERE run_id = ? AND hops < ?", hops, into.runId, hops);
  const kept = "SELECT 1 FROM runs WHERE kept_for = ? AND state = 'queued' LIMIT 1";
  if (row.keptFor === into.runId && (yield* tx.get(kept, into.runId)) === undefined)
    yield* markWritten(tx, held);
  yield* refreshQueue(row.session.uid);
  tx.addEvent("run.steered", row.session, runId, { mergedInto: into.runId });
}

export function* enterWait(
  tx: RunTransaction,
  held: HeldRun,
  wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
): Script<WaitEntered> {
  const row = yield* tx.held(held);
  const runIds = wait.runIds ?? [];
  // Several tool calls in one message can wait at the same time. The first one has already freed the slot.
  const next = row.state === "waiting" ? row.state : nextState(row, "wait");
  const cycle = yield* findCycle(row.runId, runIds, (runId) => waitsFor(tx, runId));
  if (cycle !== null) return { entered: false, cycle };
  for (const runId of runIds) {
    const sql = "INSERT INTO run_waits (from_run, to_run) VALUES (?, ?) ON CONFLICT DO NOTHING";
    yield* tx.run(sql, row.runId, runId);
  }
  yield* tx.run("UPDATE runs SET state = ? WHERE run_id = ?", next, row.runId);
  const which = wait.runIds === undefined ? {} : { runIds };
  tx.addEvent("run.waiting", row.session, row.runId, { for: wait.for, ...which });
  return { entered: true };
}

/** Gives a resuming run a slot ahead of new claims. Returns `false` if no slot is free. */
export function* resumeRun(tx: RunTransaction, held: HeldRun): Script<boolean> {
  const row = yield* tx.held(held);
  const next = nextState(row, "wait_over");
  if (!row.isSilent) yield* lockFor("slots");
  const isFree = row.isSilent || (yield* takenSlots("only running"))[row.lane] < tx.options.lanes[row.lane];
  if (!isFree) {
    yield* tx.run("UPDATE runs SET resuming = 1 WHERE run_id = ?", row.runId);
    return false;
  }
  yield* tx.run("UPDATE runs SET state = ?, resuming = 0 WHERE run_id = ?", next, row.runId);
  yield* tx.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  tx.addEvent("run.resumed", row.session, row.runId, {});
  return true;
}

export function* sleepRun(
  tx: RunTransaction,
  held: HeldRun,
  sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
): Script<"sleeping" | "queued" | "nothing_to_wait_for" | "aborted"> {
  const row = yield* tx.held(held);
  if (row.abortRequested) {
    yield* endRun(tx, row, { state: "aborted", code: "aborted", ...abortError(row) });
    return "aborted";
  }
  const next = nextState(row, "yield");
  const targets = [...new Set(sleep.waitFor ?? (yield* listStartedRuns(tx, row)))].filter(
    (each) => each !== row.runId,
  );
  const wanted: { readonly runId: string; readonly arrivals: readonly number[] }[] = [];
  for (const runId of targets) {
    const { isOpen, arrivals } = yield* findAwaited(tx, row, runId);
    if (isOpen || arrivals.length > 0) wanted.push({ runId, arrivals });
  }
  if (wanted.length === 0) return "nothing_to_wait_for";
  const now = tx.now();
  const wakeAt = Math.min(sleep.wakeAt, now + tx.options.yieldTimeoutMs);
  yield* tx.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  for (const { runId, arrivals } of wanted) {
    const sql = "INSERT INTO run_waits (from_run, to_run, arrived) VALUES (?, ?, ?)";
    yield* tx.run(sql, row.runId, runId, arrivals.length > 0 ? 1 : 0);
    for (const seq of arrivals)
      yield* tx.run("UPDATE runs SET kept_for = ?, not_before = NULL WHERE seq = ?", row.runId, seq);
  }
  yield* tx.run(
    `UPDATE runs SET state = ?, owner = NULL, lease_until = NULL, slept_at = ?, wake_at = ?, woken = 0, written = 1
     WHERE run_id = ?`,
    next,
    now,
    wakeAt,
    row.runId,
  );
  const waitingFor = wanted.filter(({ arrivals }) => arrivals.length === 0).map(({ runId }) => runId);
  tx.addEvent("run.sleeping", row.session, row.runId, { waitingFor, wakeAt });
  yield* emitChildState(tx, row, "sleeping");
  yield* refreshQueue(row.session.uid);
  const asleep = yield* tx.row(row.runId);
  if (waitingFor.length > 0 || asleep === null) return "sleeping";
  yield* wakeRun(tx, asleep);
  return "queued";
}

function* listStartedRuns(tx: RunTransaction, row: RunRow): Script<string[]> {
  const started = yield* tx.all("SELECT run_id FROM runs WHERE started_by = ? ORDER BY seq", row.runId);
  return started.map(({ run_id }) => String(run_id));
}

/** Returns whether a run is still open and which of its announcements are already in the inbox. */
function* findAwaited(
  tx: RunTransaction,
  row: RunRow,
  runId: string,
): Script<{ isOpen: boolean; arrivals: number[] }> {
  const target = yield* tx.row(runId);
  if (target !== null && target.user !== row.user) return { isOpen: false, arrivals: [] };
  const sql =
    "SELECT seq FROM runs WHERE arrival_of = ? AND uid = ? AND state = 'queued' AND kept_for IS NULL AND started_at IS NULL";
  const arrivals = (yield* tx.all(sql, runId, row.session.uid)).map(({ seq }) => Number(seq));
  return { isOpen: target !== null && isOpenRun(target), arrivals };
}

/**
 * Detects a deadlock before a wait begins. `waitsFor` returns the runs that a run is currently waiting for. Returns the
 * cycle, from the run back to itself, or `null` if there is none.
 */
export function* findCycle(
  from: string,
  targets: readonly string[],
  waitsFor: (runId: string) => Script<readonly string[]>,
): Script<readonly string[] | null> {
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
    for (const next of yield* waitsFor(runId)) visit(next, runId);
  }
  return null;
}

function* waitsFor(tx: RunTransaction, runId: string): Script<readonly string[]> {
  return (yield* findWaits(tx, runId))?.runIds ?? [];
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
