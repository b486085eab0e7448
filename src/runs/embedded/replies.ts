import type { Awaiting, HeldRun, ReplyWait } from "../contract.ts";
import type { Books } from "./books.ts";

/** Who waits for the reply of a run, and who gets it: decided once, in the transaction that ends the run or the wait. */

export function awaitReply(books: Books, runId: string, { by, until }: Awaiting): void {
  books.run(
    "INSERT INTO run_replies (run_id, by_run, by_owner, until, state) VALUES (?, ?, ?, ?, 'open')",
    runId,
    "runId" in by ? by.runId : null,
    "owner" in by ? by.owner : null,
    until,
  );
}

/** The run has ended: whether its reply is a waiter's. Who is gone, or was to wait no longer than this, does not get it. */
export function takeReply(books: Books, runId: string): boolean {
  const wait = books.get(
    "SELECT by_run, by_owner, until FROM run_replies WHERE run_id = ? AND state = 'open'",
    runId,
  );
  if (wait === undefined) return false;
  const isTaken =
    wait.by_run === null
      ? books.now() <= Number(wait.until) && !books.options.isGone(String(wait.by_owner))
      : isOpen(books, String(wait.by_run));
  settle(books, runId, isTaken ? "taken" : "late");
  return isTaken;
}

/** A run that waits says itself when it does so no longer; until then its time is not over. */
function isOpen(books: Books, runId: string): boolean {
  return books.get("SELECT 1 FROM runs WHERE run_id = ? AND ended_at IS NULL", runId) !== undefined;
}

function settle(books: Books, runId: string, state: "taken" | "late"): void {
  const sql = "UPDATE run_replies SET state = ?, settled_at = ? WHERE run_id = ? AND state = 'open'";
  books.run(sql, state, books.now(), runId);
}

/** A run that has ended waits for nothing any more. */
export function leaveReplies(books: Books, waiter: string): void {
  const sql = "UPDATE run_replies SET state = 'late', settled_at = ? WHERE by_run = ? AND state = 'open'";
  books.run(sql, books.now(), waiter);
}

/** The reply stands in the session of the run that took it. */
export function confirmReply(books: Books, { runId: waiter }: HeldRun, runId: string): void {
  const sql = "UPDATE run_replies SET state = 'written' WHERE run_id = ? AND by_run = ? AND state = 'taken'";
  books.run(sql, runId, waiter);
}

const unwritten = `SELECT run_id FROM runs JOIN run_replies USING (run_id)
  WHERE started_by = ? AND by_run = started_by AND run_replies.state = 'taken'`;

/** Whether a run took a reply that it has not written. */
export function hasUnwrittenReply(books: Books, waiter: string): boolean {
  return books.get(`${unwritten} LIMIT 1`, waiter) !== undefined;
}

/** Gives up the replies that a failed run took and did not confirm. `settleReturned` decides what becomes of them. */
export function returnReplies(books: Books, waiter: string): void {
  for (const { run_id } of books.all(unwritten, waiter))
    books.run("UPDATE run_replies SET state = 'returned' WHERE run_id = ?", String(run_id));
}

/** What stands, once nobody waits. Without a wait the sequel takes its course too. */
export function stopWaiting(books: Books, runId: string): "taken" | "late" {
  settle(books, runId, "late");
  return replyWaitOf(books, runId)?.state === "taken" ? "taken" : "late";
}

const waitStates: Readonly<Record<string, ReplyWait["state"]>> = { written: "taken", returned: "taken" };

export function replyWaitOf(books: Books, runId: string): ReplyWait | null {
  const row = books.get("SELECT state, until FROM run_replies WHERE run_id = ?", runId);
  if (row === undefined) return null;
  const state = waitStates[String(row.state)] ?? (row.state as ReplyWait["state"]);
  return { state, until: Number(row.until) };
}
