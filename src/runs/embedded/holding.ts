import type { DeliveryTarget, HeldRun, Run, WaitEntered } from "../contract.ts";
import { isEnded, nextState } from "../states.ts";
import { findCycle } from "../waits.ts";
import type { Books } from "./books.ts";
import { tellStarter } from "./child-events.ts";
import { lackingHere } from "./claimants.ts";
import { wake } from "./ending.ts";
import { refreshQueue, takenSlots } from "./queue.ts";
import type { RunRow } from "./rows.ts";
import { publicRun } from "./rows.ts";
import { waitsFor } from "./waits-of.ts";

/** What the owner of a run does with it between its claim and its end. Each is called in a transaction. */

export function renewLeases(books: Books, owner: string, held: readonly HeldRun[]): string[] {
  const until = books.now() + books.options.leaseMs;
  const sql = "UPDATE runs SET lease_until = ? WHERE run_id = ? AND fence = ? AND owner = ?";
  return held
    .filter(({ runId, fence }) => books.run(sql, until, runId, fence, owner) === 0)
    .map(({ runId }) => runId);
}

/** Its input stands in the session; of a woken run, what it woke for does. */
export function markWritten(books: Books, held: HeldRun): void {
  const { runId, isWoken } = books.heldLine(held);
  books.run("UPDATE runs SET written = 1, woken = 0 WHERE run_id = ?", runId);
  if (isWoken) books.run("DELETE FROM run_waits WHERE from_run = ?", runId);
}

/** Input that asks for an answer of a certain form, or elsewhere than the running turn's goes, is a turn of its own. */
export function steerableInto(books: Books, held: HeldRun): Run[] {
  const { uid } = books.heldLine(held);
  const rows = books
    .rows(
      `uid = ? AND state = 'queued' AND mode = 'steer' AND kept_for IS NULL AND silent = 0 AND started_at IS NULL
       ORDER BY seq`,
      uid,
    )
    .filter((row) => row.options.outputSchema === undefined && lackingHere(books, row) === null);
  if (rows.length === 0) return [];
  const { deliverTo } = books.held(held).options;
  return rows.filter(({ options }) => isAnsweredBy(options.deliverTo, deliverTo)).map(publicRun);
}

/** Whether whoever waits for an answer gets the one that goes there. Without a target nobody waits. */
function isAnsweredBy(asked: DeliveryTarget | undefined, given: DeliveryTarget | undefined): boolean {
  const isSame = (name: keyof DeliveryTarget) => asked?.[name] === given?.[name];
  return asked === undefined || (["channel", "to", "accountId", "threadId"] as const).every(isSame);
}

/** A turn with several inputs carries its first root and the highest hops. */
export function mergeInto(books: Books, held: HeldRun, runId: string): void {
  const into = books.held(held);
  const row = books.row(runId);
  if (row === null || row.session.uid !== into.session.uid) return;
  const next = nextState(row, "steered");
  if (next === null) return;
  books.run(
    "UPDATE runs SET state = ?, merged_into = ?, written = 1, kept_for = NULL, not_before = NULL WHERE run_id = ?",
    next,
    into.runId,
    runId,
  );
  books.run("UPDATE runs SET hops = max(hops, ?) WHERE run_id = ?", row.root.hops, into.runId);
  const kept = "SELECT 1 FROM runs WHERE kept_for = ? AND state = 'queued' LIMIT 1";
  if (row.keptFor === into.runId && books.get(kept, into.runId) === undefined) markWritten(books, held);
  refreshQueue(books, row.session.uid);
  books.note("run.steered", row.session, runId, { mergedInto: into.runId });
}

export function enterWait(
  books: Books,
  held: HeldRun,
  wait: { readonly for: "run" | "approval"; readonly runIds?: readonly string[] },
): WaitEntered {
  const row = books.held(held);
  const runIds = wait.runIds ?? [];
  // Several calls of one message may wait at once: the second finds the slot free already.
  const next = row.state === "waiting" ? row.state : nextState(row, "wait");
  const cycle = findCycle(row.runId, runIds, (runId) => waitsFor(books, runId));
  if (cycle !== null) return { entered: false, cycle };
  for (const runId of runIds) {
    books.run("INSERT OR IGNORE INTO run_waits (from_run, to_run) VALUES (?, ?)", row.runId, runId);
  }
  books.run("UPDATE runs SET state = ? WHERE run_id = ?", next, row.runId);
  const which = wait.runIds === undefined ? {} : { runIds };
  books.note("run.waiting", row.session, row.runId, { for: wait.for, ...which });
  return { entered: true };
}

/** Before any new claim: a slot that comes free is not given away as long as somebody wants it back. */
export function resume(books: Books, held: HeldRun): boolean {
  const row = books.held(held);
  const next = nextState(row, "wait_over");
  const isFree = row.isSilent || takenSlots(books, "only running")[row.lane] < books.options.lanes[row.lane];
  if (!isFree) {
    books.run("UPDATE runs SET resuming = 1 WHERE run_id = ?", row.runId);
    return false;
  }
  books.run("UPDATE runs SET state = ?, resuming = 0 WHERE run_id = ?", next, row.runId);
  books.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  books.note("run.resumed", row.session, row.runId, {});
  return true;
}

export function goToSleep(
  books: Books,
  held: HeldRun,
  sleep: { readonly waitFor?: readonly string[]; readonly wakeAt: number },
): "sleeping" | "queued" | "nothing_to_wait_for" {
  const row = books.held(held);
  const next = nextState(row, "yield");
  const targets = [...new Set(sleep.waitFor ?? startedBy(books, row))].filter((each) => each !== row.runId);
  const found = targets.map((runId) => ({ runId, ...findTarget(books, row, runId) }));
  const wanted = found.filter(({ isOpen, arrivals }) => isOpen || arrivals.length > 0);
  if (wanted.length === 0) return "nothing_to_wait_for";
  const now = books.now();
  const wakeAt = Math.min(sleep.wakeAt, now + books.options.yieldTimeoutMs);
  books.run("DELETE FROM run_waits WHERE from_run = ?", row.runId);
  for (const { runId, arrivals } of wanted) {
    const sql = "INSERT INTO run_waits (from_run, to_run, arrived) VALUES (?, ?, ?)";
    books.run(sql, row.runId, runId, arrivals.length > 0 ? 1 : 0);
    for (const seq of arrivals)
      books.run("UPDATE runs SET kept_for = ?, not_before = NULL WHERE seq = ?", row.runId, seq);
  }
  books.run(
    `UPDATE runs SET state = ?, owner = NULL, lease_until = NULL, slept_at = ?, wake_at = ?, woken = 0, written = 1
     WHERE run_id = ?`,
    next,
    now,
    wakeAt,
    row.runId,
  );
  const waitingFor = wanted.filter(({ arrivals }) => arrivals.length === 0).map(({ runId }) => runId);
  books.note("run.sleeping", row.session, row.runId, { waitingFor, wakeAt });
  tellStarter(books, row, "sleeping");
  refreshQueue(books, row.session.uid);
  const asleep = books.row(row.runId);
  if (waitingFor.length > 0 || asleep === null) return "sleeping";
  wake(books, asleep);
  return "queued";
}

function startedBy(books: Books, row: RunRow): string[] {
  const started = books.all("SELECT run_id FROM runs WHERE started_by = ? ORDER BY seq", row.runId);
  return started.map(({ run_id }) => String(run_id));
}

/** Whether a run is still to be heard of, and what of it waits in the inbox already. */
function findTarget(books: Books, row: RunRow, runId: string): { isOpen: boolean; arrivals: number[] } {
  const target = books.row(runId);
  if (target !== null && target.user !== row.user) return { isOpen: false, arrivals: [] };
  const sql =
    "SELECT seq FROM runs WHERE arrival_of = ? AND uid = ? AND state = 'queued' AND kept_for IS NULL AND started_at IS NULL";
  const arrivals = books.all(sql, runId, row.session.uid).map(({ seq }) => Number(seq));
  const isOpen =
    target !== null && (target.state === "merged" ? target.outcome === null : !isEnded(target.state));
  return { isOpen, arrivals };
}
