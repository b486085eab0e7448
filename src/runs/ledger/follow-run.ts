import { resultEntryId } from "../../core/hashed-id.ts";
import { readKey } from "../../core/keys.ts";
import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { Awaiting, HeldRun, Outcome, ReplyWait, Run } from "../contract.ts";
import type { SequelStep } from "../plan-sequel.ts";
import { putOutbox } from "./outbox.ts";
import type { Durability, RunLedger, RunRow } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/** What follows the end of a run: the reply is the waiter's, or the sequel takes its course. */

/** `ended`: as it stands now. A run that sleeps for it is woken only after this, and then finds the outcome. */
export function startSequel(ledger: RunLedger, ended: RunRow, outcome: Outcome): void {
  if (!ended.isFollowed || takeReply(ledger, ended.runId) || ended.options.sequel === undefined) return;
  const run = publicRun(ended);
  const endedAt = ended.endedAt ?? ledger.now();
  const steps = ledger.options.planSequel(run, outcome, {
    endedAt,
    isAskerAsleep: isAskerAsleep(ledger, run),
  });
  for (const step of steps) deliverStep(ledger, run, step);
}

function isAskerAsleep(ledger: RunLedger, { runId, session, options }: Run): boolean {
  const { sequel } = options;
  if (sequel?.type !== "reply") return false;
  const asker = ledger.sessionAt(session.userId, { key: sequel.asker.key });
  return asker !== null && findSleeper(ledger, runId, asker.uid) !== null;
}

/** The run of a session that sleeps for this one, or woke and has not gone on yet. */
export function findSleeper(ledger: RunLedger, runId: string, uid: string): string | null {
  const sleepers = ledger.rows(
    `uid = ? AND (state = 'sleeping' OR (state = 'queued' AND woken = 1))
     AND run_id IN (SELECT from_run FROM run_waits WHERE to_run = ? AND arrived = 0) ORDER BY seq LIMIT 1`,
    uid,
    runId,
  );
  return sleepers[0]?.runId ?? null;
}

function deliverStep(ledger: RunLedger, run: Run, { to, request, isBetweenStrangers }: SequelStep): void {
  const target = findStepTarget(ledger, run.session.userId, to);
  if (target === null) {
    putLetter(ledger, run, { to, request });
    return;
  }
  const pair = isBetweenStrangers ? { pair: [run.session.uid, target.uid] as const } : {};
  ledger.accept({ ...request, ...pair, session: target, isDelivery: true });
}

/** Who has the key; what was for a sub-agent that is gone is for the session that spawned it. */
function findStepTarget(
  ledger: RunLedger,
  userId: string | null,
  { key, parentSessionId }: SequelStep["to"],
): SessionRef | null {
  const found = ledger.sessionAt(userId, { key });
  if (found !== null) return found;
  const read = readKey(key);
  const isChild = "form" in read && read.form === "subagent";
  // By its key first: it may have been reset since.
  const parentKey = isChild ? parentKeyOf(ledger, userId, read.spawnId) : null;
  const parent = parentKey === null ? null : ledger.sessionAt(userId, { key: parentKey });
  if (parent !== null) return parent;
  const sessionId = parentSessionId ?? (isChild ? read.parentSessionId : undefined);
  return sessionId === undefined ? null : ledger.sessionAt(userId, { sessionId });
}

function parentKeyOf(ledger: RunLedger, userId: string | null, spawnId: string): string | null {
  const sql = "SELECT parent_key FROM children WHERE user = ? AND spawn_id = ?";
  const child = ledger.get(sql, userId ?? "", spawnId);
  return child === undefined ? null : String(child.parent_key);
}

/** Nobody is there to read it: a letter of the run's own session, dead at once where that goes too. */
function putLetter(ledger: RunLedger, run: Run, { to, request }: Pick<SequelStep, "to" | "request">): void {
  const { session, runId } = run;
  const content = "content" in request.message ? (request.message.content as Content) : "";
  const letter = {
    session,
    runId,
    target: { channel: "session", to: to.key },
    text: textOf(content),
    idempotencyKey: request.idempotencyKey ?? `sequel:${runId}`,
  };
  const isLeaving = session.uid === ledger.leaving;
  putOutbox(
    ledger,
    letter,
    isLeaving ? `Nobody has the session ${to.key}, nor sent this any more.` : undefined,
  );
}

/**
 * A process can die between writing a reply and confirming it, so the session decides: a reply that is written there is
 * confirmed, and any other is delivered like a reply without a waiter. A session in a store that this process does not have is left to
 * one that has it. Returns the errors of sessions that could not be read.
 */
export async function settleReturnedReplies(ledger: RunLedger): Promise<unknown[]> {
  const problems: unknown[] = [];
  const returned = "SELECT run_id, by_run FROM run_replies WHERE state = 'returned'";
  for (const { run_id, by_run } of ledger.all(returned)) {
    const runId = String(run_id);
    try {
      const waiter = ledger.row(String(by_run));
      if (waiter !== null && !ledger.options.hasStore(waiter.session.userId)) continue;
      const isWritten =
        waiter !== null && (await ledger.options.hasEntry(waiter.session, resultEntryId(runId)));
      ledger.change("synced", () => settleReply(ledger, runId, isWritten));
    } catch (error) {
      problems.push(error);
    }
  }
  return problems;
}

function settleReply(ledger: RunLedger, runId: string, isWritten: boolean): void {
  const sql = "UPDATE run_replies SET state = ? WHERE run_id = ? AND state = 'returned'";
  const isSettledHere = ledger.run(sql, isWritten ? "written" : "late", runId) === 1;
  const row = isSettledHere && !isWritten ? ledger.row(runId) : null;
  if (row !== null && row.outcome !== null) startSequel(ledger, row, row.outcome);
}

/** An outcome that others receive is on disk before they receive it. Recovery may rewrite any other outcome. */
export function endDurability(ledger: RunLedger, runId: string): Durability {
  const isFollowed =
    ledger.get("SELECT 1 FROM runs WHERE run_id = ? AND followed = 1", runId) !== undefined ||
    ledger.get("SELECT 1 FROM runs WHERE merged_into = ? AND followed = 1 LIMIT 1", runId) !== undefined;
  return isFollowed || hasUnwrittenReply(ledger, runId) ? "synced" : "unsynced";
}

/** Who waits for the reply of a run, and who gets it: decided once, in the transaction that ends the run or the wait. */

export function awaitReply(ledger: RunLedger, runId: string, { by, until }: Awaiting): void {
  ledger.run(
    "INSERT INTO run_replies (run_id, by_run, by_owner, until, state) VALUES (?, ?, ?, ?, 'open')",
    runId,
    "runId" in by ? by.runId : null,
    "owner" in by ? by.owner : null,
    until,
  );
}

/** The run has ended: whether its reply is a waiter's. Who is gone, or was to wait no longer than this, does not get it. */
function takeReply(ledger: RunLedger, runId: string): boolean {
  const wait = ledger.get(
    "SELECT by_run, by_owner, until FROM run_replies WHERE run_id = ? AND state = 'open'",
    runId,
  );
  if (wait === undefined) return false;
  const isTaken =
    wait.by_run === null
      ? ledger.now() <= Number(wait.until) && !ledger.options.isGone(String(wait.by_owner))
      : isOpen(ledger, String(wait.by_run));
  settle(ledger, runId, isTaken ? "taken" : "late");
  return isTaken;
}

/** A run that waits says itself when it does so no longer; until then its time is not over. */
function isOpen(ledger: RunLedger, runId: string): boolean {
  return ledger.get("SELECT 1 FROM runs WHERE run_id = ? AND ended_at IS NULL", runId) !== undefined;
}

function settle(ledger: RunLedger, runId: string, state: "taken" | "late"): void {
  const sql = "UPDATE run_replies SET state = ?, settled_at = ? WHERE run_id = ? AND state = 'open'";
  ledger.run(sql, state, ledger.now(), runId);
}

/** A run that has ended waits for nothing any more. */
export function leaveReplies(ledger: RunLedger, waiter: string): void {
  const sql = "UPDATE run_replies SET state = 'late', settled_at = ? WHERE by_run = ? AND state = 'open'";
  ledger.run(sql, ledger.now(), waiter);
}

/** The reply stands in the session of the run that took it. */
export function confirmReply(ledger: RunLedger, { runId: waiter }: HeldRun, runId: string): void {
  const sql = "UPDATE run_replies SET state = 'written' WHERE run_id = ? AND by_run = ? AND state = 'taken'";
  ledger.run(sql, runId, waiter);
}

const unwritten = `SELECT run_id FROM runs JOIN run_replies USING (run_id)
  WHERE started_by = ? AND by_run = started_by AND run_replies.state = 'taken'`;

/** Whether a run took a reply that it has not written. */
function hasUnwrittenReply(ledger: RunLedger, waiter: string): boolean {
  return ledger.get(`${unwritten} LIMIT 1`, waiter) !== undefined;
}

/** Gives up the replies that a failed run took and did not confirm. `settleReturned` decides what becomes of them. */
export function returnReplies(ledger: RunLedger, waiter: string): void {
  for (const { run_id } of ledger.all(unwritten, waiter))
    ledger.run("UPDATE run_replies SET state = 'returned' WHERE run_id = ?", String(run_id));
}

/** What stands, once nobody waits. Without a wait the sequel takes its course too. */
export function stopWaiting(ledger: RunLedger, runId: string): "taken" | "late" {
  settle(ledger, runId, "late");
  return replyWaitOf(ledger, runId)?.state === "taken" ? "taken" : "late";
}

const waitStates: Readonly<Record<string, ReplyWait["state"]>> = { written: "taken", returned: "taken" };

export function replyWaitOf(ledger: RunLedger, runId: string): ReplyWait | null {
  const row = ledger.get("SELECT state, until FROM run_replies WHERE run_id = ?", runId);
  if (row === undefined) return null;
  const state = waitStates[String(row.state)] ?? (row.state as ReplyWait["state"]);
  return { state, until: Number(row.until) };
}
