import type { AcceptRequest, RunOptions } from "../contract.ts";
import type { Books } from "./books.ts";
import { lackingHere } from "./claimants.ts";
import { refreshQueue } from "./queue.ts";
import type { RunRow } from "./rows.ts";

/** Announcements that come within a second are one turn: the first waits so long for others that may follow. */

const companyMs = 1000;

/** How long an announcement is held back; `null`: not at all, for no other run of who started this one is open. */
export function heldBackUntil(books: Books, { kind, arrivalOf }: AcceptRequest): number | null {
  if (kind !== "announce" || arrivalOf === undefined) return null;
  const starter = books.get("SELECT started_by FROM runs WHERE run_id = ?", arrivalOf)?.started_by;
  if (starter === null || starter === undefined) return null;
  return hasOpen(books, String(starter), arrivalOf) ? books.now() + companyMs : null;
}

function hasOpen(books: Books, starter: string, except: string): boolean {
  const sql = "SELECT 1 FROM runs WHERE started_by = ? AND run_id <> ? AND ended_at IS NULL LIMIT 1";
  return books.get(sql, starter, except) !== undefined;
}

/** A run has ended: where it was the last of those that were started with it, nobody waits for more. */
export function letCompanyGo(books: Books, { startedBy, runId }: RunRow): void {
  if (startedBy === null || hasOpen(books, startedBy, runId)) return;
  const held = books.all(
    `SELECT run_id, uid FROM runs WHERE arrival_of IN (SELECT run_id FROM runs WHERE started_by = ?)
     AND state = 'queued' AND not_before IS NOT NULL`,
    startedBy,
  );
  letGo(books, held);
}

/** Whether somebody's second is over. */
export function isCompanyDue(books: Books): boolean {
  const at = nextCompanyAt(books);
  return at !== null && at <= books.now();
}

export function nextCompanyAt(books: Books): number | null {
  const sql = "SELECT min(not_before) AS at FROM runs INDEXED BY runs_held_back WHERE not_before IS NOT NULL";
  const at = books.get(sql)?.at;
  return at === null || at === undefined ? null : Number(at);
}

export function letDueGo(books: Books): void {
  if (!isCompanyDue(books)) return;
  books.change("unsynced", () => {
    const sql = "SELECT run_id, uid FROM runs WHERE not_before IS NOT NULL AND not_before <= ?";
    letGo(books, books.all(sql, books.now()));
  });
}

function letGo(books: Books, held: readonly Record<string, unknown>[]): void {
  for (const { run_id } of held)
    books.run("UPDATE runs SET not_before = NULL WHERE run_id = ?", String(run_id));
  for (const uid of new Set(held.map((each) => String(each.uid)))) refreshQueue(books, uid);
}

/**
 * An announcement is claimed: the others that wait in its session go into the same turn, as kept input does. What is to be
 * answered elsewhere, or in another way, is a turn of its own.
 */
export function takeCompany(books: Books, claimed: RunRow): void {
  const { kind, arrivalOf, isSilent, startedAt, session, seq, runId } = claimed;
  if (kind !== "announce" || arrivalOf === null || isSilent || startedAt !== null) return;
  const others = books.rows(
    `uid = ? AND state = 'queued' AND kind = 'announce' AND arrival_of IS NOT NULL AND silent = 0
     AND kept_for IS NULL AND started_at IS NULL AND seq <> ? ORDER BY seq`,
    session.uid,
    seq,
  );
  const terms = termsOf(claimed.options);
  const isOfThisTurn = (row: RunRow) => termsOf(row.options) === terms && lackingHere(books, row) === null;
  for (const each of others.filter(isOfThisTurn))
    books.run("UPDATE runs SET kept_for = ?, not_before = NULL WHERE run_id = ?", runId, each.runId);
}

/** How and where it is to be answered. */
function termsOf({ sequel: _, deliverTo, ...options }: RunOptions): string {
  const { channel, to, accountId, threadId } = deliverTo ?? {};
  const rest = Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([[channel, to, accountId, threadId], rest]);
}
