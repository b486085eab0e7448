import { readKey } from "../../core/keys.ts";
import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import { resultEntryId } from "../awaiting.ts";
import type { Outcome, Run } from "../contract.ts";
import type { SequelStep } from "../sequels/contract.ts";
import type { Books, Durability } from "./books.ts";
import { putOutbox } from "./outbox-rows.ts";
import { hasUnwrittenReply, takeReply } from "./replies.ts";
import type { RunRow } from "./rows.ts";
import { publicRun } from "./rows.ts";

/** What follows the end of a run: the reply is the waiter's, or the sequel takes its course. */

/** `ended`: as it stands now. Whoever sleeps for it is told of its end only behind this, and finds what it says. */
export function follow(books: Books, ended: RunRow, outcome: Outcome): void {
  if (!ended.isFollowed || takeReply(books, ended.runId) || ended.options.sequel === undefined) return;
  const run = publicRun(ended);
  const endedAt = ended.endedAt ?? books.now();
  const steps = books.options.sequelOf(run, outcome, { endedAt, isAskerAsleep: isAskerAsleep(books, run) });
  for (const step of steps) carryOut(books, run, step);
}

function isAskerAsleep(books: Books, { runId, session, options }: Run): boolean {
  const { sequel } = options;
  if (sequel?.type !== "reply") return false;
  const asker = books.sessionAt(session.userId, { key: sequel.asker.key });
  return asker !== null && sleeperFor(books, runId, asker.uid) !== null;
}

/** The run of a session that sleeps for this one, or woke and has not gone on yet. */
export function sleeperFor(books: Books, runId: string, uid: string): string | null {
  const sleepers = books.rows(
    `uid = ? AND (state = 'sleeping' OR (state = 'queued' AND woken = 1))
     AND run_id IN (SELECT from_run FROM run_waits WHERE to_run = ? AND arrived = 0) ORDER BY seq LIMIT 1`,
    uid,
    runId,
  );
  return sleepers[0]?.runId ?? null;
}

function carryOut(books: Books, run: Run, { to, request, isBetweenStrangers }: SequelStep): void {
  const target = targetOf(books, run.session.userId, to);
  if (target === null) {
    writeLetter(books, run, { to, request });
    return;
  }
  const pair = isBetweenStrangers ? { pair: [run.session.uid, target.uid] as const } : {};
  books.accept({ ...request, ...pair, session: target, isDelivery: true });
}

/** Who has the key; what was for a sub-agent that is gone is for the session that spawned it. */
function targetOf(
  books: Books,
  userId: string | null,
  { key, parentSessionId }: SequelStep["to"],
): SessionRef | null {
  const found = books.sessionAt(userId, { key });
  if (found !== null) return found;
  const read = readKey(key);
  const isChild = "form" in read && read.form === "subagent";
  // By its key first: it may have been reset since.
  const parentKey = isChild ? parentKeyOf(books, userId, read.spawnId) : null;
  const parent = parentKey === null ? null : books.sessionAt(userId, { key: parentKey });
  if (parent !== null) return parent;
  const sessionId = parentSessionId ?? (isChild ? read.parentSessionId : undefined);
  return sessionId === undefined ? null : books.sessionAt(userId, { sessionId });
}

function parentKeyOf(books: Books, userId: string | null, spawnId: string): string | null {
  const sql = "SELECT parent_key FROM children WHERE user = ? AND spawn_id = ?";
  const child = books.get(sql, userId ?? "", spawnId);
  return child === undefined ? null : String(child.parent_key);
}

/** Nobody is there to read it: a letter of the run's own session, dead at once where that goes too. */
function writeLetter(books: Books, run: Run, { to, request }: Pick<SequelStep, "to" | "request">): void {
  const { session, runId } = run;
  const content = "content" in request.message ? (request.message.content as Content) : "";
  const letter = {
    session,
    runId,
    target: { channel: "session", to: to.key },
    text: textOf(content),
    idempotencyKey: request.idempotencyKey ?? `sequel:${runId}`,
  };
  const isLeaving = session.uid === books.leaving;
  putOutbox(
    books,
    letter,
    isLeaving ? `Nobody has the session ${to.key}, nor sent this any more.` : undefined,
  );
}

/**
 * A process can die between writing a reply and confirming it, so the session decides: a reply that is written there is
 * confirmed, and any other is delivered like a reply without a waiter. A session in a store that this process does not have is left to
 * one that has it. Returns the errors of sessions that could not be read.
 */
export async function settleReturned(books: Books): Promise<unknown[]> {
  const problems: unknown[] = [];
  const returned = "SELECT run_id, by_run FROM run_replies WHERE state = 'returned'";
  for (const { run_id, by_run } of books.all(returned)) {
    const runId = String(run_id);
    try {
      const waiter = books.row(String(by_run));
      if (waiter !== null && !books.options.hasStore(waiter.session.userId)) continue;
      const isWritten =
        waiter !== null && (await books.options.hasEntry(waiter.session, resultEntryId(runId)));
      books.change("synced", () => settleOne(books, runId, isWritten));
    } catch (error) {
      problems.push(error);
    }
  }
  return problems;
}

function settleOne(books: Books, runId: string, isWritten: boolean): void {
  const sql = "UPDATE run_replies SET state = ? WHERE run_id = ? AND state = 'returned'";
  const isSettledHere = books.run(sql, isWritten ? "written" : "late", runId) === 1;
  const row = isSettledHere && !isWritten ? books.row(runId) : null;
  if (row !== null && row.outcome !== null) follow(books, row, row.outcome);
}

/** What is told to others is on the disk before they hear of it; any other end may be written again by recovery. */
export function endDurability(books: Books, runId: string): Durability {
  const isFollowed =
    books.get("SELECT 1 FROM runs WHERE run_id = ? AND followed = 1", runId) !== undefined ||
    books.get("SELECT 1 FROM runs WHERE merged_into = ? AND followed = 1 LIMIT 1", runId) !== undefined;
  return isFollowed || hasUnwrittenReply(books, runId) ? "synced" : "unsynced";
}
