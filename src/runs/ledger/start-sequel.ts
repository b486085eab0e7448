import { resultEntryId } from "../../core/hashed-id.ts";
import { readKey } from "../../core/keys.ts";
import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { Durability, Script } from "../../core/script.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { Awaiting, HeldRun, Outcome, ReplyWait, Run } from "../contract.ts";
import type { SequelStep } from "../plan-sequel.ts";
import { putOutbox } from "./outbox.ts";
import type { RunLedger, RunRow, RunTransaction } from "./run-ledger.ts";
import { publicRun } from "./run-ledger.ts";

/**
 * Gives an ended run's reply to its waiter, or starts its sequel if there is no waiter. Must run before sleeping runs
 * wake.
 */
export function* startSequel(tx: RunTransaction, ended: RunRow, outcome: Outcome): Script<void> {
  if (!ended.isFollowed || (yield* takeReply(tx, ended.runId)) || ended.options.sequel === undefined) return;
  const run = publicRun(ended);
  const facts = { endedAt: ended.endedAt ?? tx.now(), isAskerAsleep: yield* isAskerAsleep(tx, run) };
  for (const step of tx.options.planSequel(run, outcome, facts)) yield* deliverStep(tx, run, step);
}

function* isAskerAsleep(tx: RunTransaction, { runId, session, options }: Run): Script<boolean> {
  const { sequel } = options;
  if (sequel?.type !== "reply") return false;
  const asker = yield* tx.sessionAt(session.userId, { key: sequel.asker.key });
  return asker !== null && (yield* findSleeper(tx, runId, asker.uid)) !== null;
}

/** Returns the session's run that is sleeping until this one ends, or that has woken but has not been claimed yet. */
export function* findSleeper(tx: RunTransaction, runId: string, uid: string): Script<string | null> {
  const sleepers = yield* tx.rows(
    `uid = ? AND (state = 'sleeping' OR (state = 'queued' AND woken = 1))
     AND run_id IN (SELECT from_run FROM run_waits WHERE to_run = ? AND arrived = 0) ORDER BY seq LIMIT 1`,
    uid,
    runId,
  );
  return sleepers[0]?.runId ?? null;
}

function* deliverStep(
  tx: RunTransaction,
  run: Run,
  { to, request, isBetweenStrangers }: SequelStep,
): Script<void> {
  const target = yield* findStepTarget(tx, run.session.userId, to);
  if (target === null) {
    yield* putLetter(tx, run, { to, request });
    return;
  }
  const pair = isBetweenStrangers ? { pair: [run.session.uid, target.uid] as const } : {};
  yield* tx.accept({ ...request, ...pair, session: target, isDelivery: true });
}

/**
 * Returns the session that has the key. If it was a sub-agent that no longer exists, returns the session that spawned
 * it.
 */
function* findStepTarget(
  tx: RunTransaction,
  userId: string | null,
  { key, parentSessionId }: SequelStep["to"],
): Script<SessionRef | null> {
  const found = yield* tx.sessionAt(userId, { key });
  if (found !== null) return found;
  const read = readKey(key);
  const isChild = "form" in read && read.form === "subagent";
  // Looks up by key first, because the parent might have been reset.
  const parentKey = isChild ? yield* parentKeyOf(tx, userId, read.spawnId) : null;
  const parent = parentKey === null ? null : yield* tx.sessionAt(userId, { key: parentKey });
  if (parent !== null) return parent;
  const sessionId = parentSessionId ?? (isChild ? read.parentSessionId : undefined);
  return sessionId === undefined ? null : yield* tx.sessionAt(userId, { sessionId });
}

function* parentKeyOf(tx: RunTransaction, userId: string | null, spawnId: string): Script<string | null> {
  const sql = "SELECT parent_key FROM children WHERE user = ? AND spawn_id = ?";
  const child = yield* tx.get(sql, userId ?? "", spawnId);
  return child === undefined ? null : String(child.parent_key);
}

/**
 * Stores a message whose target does not exist as an outbox row of the run's session. If that session is being removed,
 * the row is dead.
 */
function* putLetter(
  tx: RunTransaction,
  run: Run,
  { to, request }: Pick<SequelStep, "to" | "request">,
): Script<void> {
  const { session, runId } = run;
  const content = "content" in request.message ? (request.message.content as Content) : "";
  const letter = {
    session,
    runId,
    target: { channel: "session", to: to.key },
    text: textOf(content),
    idempotencyKey: request.idempotencyKey ?? `sequel:${runId}`,
  };
  const isLeaving = session.uid === tx.leaving;
  const error = isLeaving
    ? `The session ${to.key} and the sender of this message no longer exist.`
    : undefined;
  yield* putOutbox(tx, letter, error);
}

export const returnedReplies = "SELECT run_id, by_run FROM run_replies WHERE state = 'returned'";

/**
 * Confirms or delivers each returned reply. A process can crash between writing a reply and confirming it, so the
 * session's log decides. A reply in the log is confirmed. Any other reply is delivered as if there were no waiter.
 * Skips sessions in stores that this process does not have. Returns the errors for sessions that could not be read.
 */
export async function settleReturnedReplies(ledger: RunLedger): Promise<unknown[]> {
  const problems: unknown[] = [];
  for (const { run_id, by_run } of await ledger.read((tx) => tx.all(returnedReplies))) {
    const runId = String(run_id);
    try {
      const waiter = await ledger.read((tx) => tx.row(String(by_run)));
      if (waiter !== null && !ledger.options.hasStore(waiter.session.userId)) continue;
      const isWritten =
        waiter !== null && (await ledger.options.hasEntry(waiter.session, resultEntryId(runId)));
      await ledger.change("synced", { runId }, (tx) => settleReply(tx, runId, isWritten));
    } catch (error) {
      problems.push(error);
    }
  }
  return problems;
}

function* settleReply(tx: RunTransaction, runId: string, isWritten: boolean): Script<void> {
  const sql = "UPDATE run_replies SET state = ? WHERE run_id = ? AND state = 'returned'";
  const isSettledHere = (yield* tx.run(sql, isWritten ? "written" : "late", runId)) === 1;
  const row = isSettledHere && !isWritten ? yield* tx.row(runId) : null;
  if (row !== null && row.outcome !== null) yield* startSequel(tx, row, row.outcome);
}

/**
 * Returns how durably the end of a run must be written. An outcome that other runs receive is synced, but recovery can
 * rewrite any other outcome.
 */
export function* endDurability(tx: RunTransaction, runId: string): Script<Durability> {
  const isFollowed =
    (yield* tx.get("SELECT 1 FROM runs WHERE run_id = ? AND followed = 1", runId)) !== undefined ||
    (yield* tx.get("SELECT 1 FROM runs WHERE merged_into = ? AND followed = 1 LIMIT 1", runId)) !== undefined;
  return isFollowed || (yield* hasUnwrittenReply(tx, runId)) ? "synced" : "unsynced";
}

/**
 * Registers a waiter. The transaction that ends the run or the wait decides, once, whether the waiter or the sequel
 * receives the reply.
 */
export function* awaitReply(tx: RunTransaction, runId: string, { by, until }: Awaiting): Script<void> {
  yield* tx.run(
    "INSERT INTO run_replies (run_id, by_run, by_owner, until, state) VALUES (?, ?, ?, ?, 'open')",
    runId,
    "runId" in by ? by.runId : null,
    "owner" in by ? by.owner : null,
    until,
  );
}

/**
 * Whether an ended run's reply goes to a waiter. A waiter that no longer exists or has timed out does not receive it.
 */
function* takeReply(tx: RunTransaction, runId: string): Script<boolean> {
  const wait = yield* tx.get(
    "SELECT by_run, by_owner, until FROM run_replies WHERE run_id = ? AND state = 'open'",
    runId,
  );
  if (wait === undefined) return false;
  const isTaken =
    wait.by_run === null
      ? tx.now() <= Number(wait.until) && !tx.options.isGone(String(wait.by_owner))
      : yield* isOpen(tx, String(wait.by_run));
  yield* settle(tx, runId, isTaken ? "taken" : "late");
  return isTaken;
}

/** Whether a run is open. A waiting run ends its own wait, so `until` does not apply. */
function* isOpen(tx: RunTransaction, runId: string): Script<boolean> {
  return (yield* tx.get("SELECT 1 FROM runs WHERE run_id = ? AND ended_at IS NULL", runId)) !== undefined;
}

function* settle(tx: RunTransaction, runId: string, state: "taken" | "late"): Script<void> {
  const sql = "UPDATE run_replies SET state = ?, settled_at = ? WHERE run_id = ? AND state = 'open'";
  yield* tx.run(sql, state, tx.now(), runId);
}

/** Ends all waits that an ended run had registered. */
export function* leaveReplies(tx: RunTransaction, waiter: string): Script<void> {
  const sql = "UPDATE run_replies SET state = 'late', settled_at = ? WHERE by_run = ? AND state = 'open'";
  yield* tx.run(sql, tx.now(), waiter);
}

/** Records that the run that took the reply has written it to its session. */
export function* confirmReply(tx: RunTransaction, held: HeldRun, runId: string): Script<void> {
  const { runId: waiter } = yield* tx.heldLine(held);
  const sql = "UPDATE run_replies SET state = 'written' WHERE run_id = ? AND by_run = ? AND state = 'taken'";
  yield* tx.run(sql, runId, waiter);
}

const unwritten = `SELECT run_id FROM runs JOIN run_replies USING (run_id)
  WHERE started_by = ? AND by_run = started_by AND run_replies.state = 'taken'`;

/** Whether a run has taken a reply that it has not written yet. */
function* hasUnwrittenReply(tx: RunTransaction, waiter: string): Script<boolean> {
  return (yield* tx.get(`${unwritten} LIMIT 1`, waiter)) !== undefined;
}

/**
 * Marks the replies that a failed run took but did not confirm as returned. `settleReturnedReplies` then decides where
 * they go.
 */
export function* returnReplies(tx: RunTransaction, waiter: string): Script<void> {
  for (const { run_id } of yield* tx.all(unwritten, waiter))
    yield* tx.run("UPDATE run_replies SET state = 'returned' WHERE run_id = ?", String(run_id));
}

/** Returns `late` if no wait is registered, because the sequel then delivers the reply. */
export function* stopAwaiting(tx: RunTransaction, runId: string): Script<"taken" | "late"> {
  yield* settle(tx, runId, "late");
  return (yield* readReplyWait(tx, runId))?.state === "taken" ? "taken" : "late";
}

const waitStates: Readonly<Record<string, ReplyWait["state"]>> = { written: "taken", returned: "taken" };

export function* readReplyWait(tx: RunTransaction, runId: string): Script<ReplyWait | null> {
  const row = yield* tx.get("SELECT state, until FROM run_replies WHERE run_id = ?", runId);
  if (row === undefined) return null;
  const state = waitStates[String(row.state)] ?? (row.state as ReplyWait["state"]);
  return { state, until: Number(row.until) };
}
