import { mostLost } from "../states.ts";
import { answer, expired } from "./approvals.ts";
import type { Books } from "./books.ts";
import { endUnclaimed, takeBackLost } from "./claiming.ts";
import { letDueGo, nextCompanyAt } from "./company.ts";
import { wake } from "./ending.ts";
import { settleReturned } from "./following.ts";

/** What time brings: lost leases, wake times, deadlines, and the end of remembering. */

const keepMs = 30 * 24 * 60 * 60 * 1000;
/** So many old rows are forgotten at once; the next sweep goes on. */
const mostForgotten = 500;

export async function sweepAll(books: Books): Promise<{ readonly nextAt: number | null }> {
  const problems = [...(await takeBackLost(books, null)), ...(await settleReturned(books))];
  const now = books.now();
  const sleepers = () => books.rows("state = 'sleeping' AND wake_at <= ?", now);
  if (sleepers().length > 0) books.change("synced", () => sleepers().map((row) => wake(books, row)));
  for (const row of books.rows("state = 'queued' AND deadline IS NOT NULL AND deadline <= ?", now))
    endUnclaimed(books, row, "deadline");
  letDueGo(books);
  for (const approvalId of expired(books)) {
    books.change("synced", () => answer(books, approvalId, "expired", null));
  }
  forget(books, now - keepMs);
  if (problems.length > 0) throw problems[0];
  return { nextAt: nextTime(books) };
}

function forget(books: Books, before: number): void {
  // A child that is still to be archived, or that was handed files, is known until these are gone, and lost input until it is retried.
  const old = `SELECT seq FROM runs WHERE ended_at IS NOT NULL AND ended_at < ?
    AND (lost <= ${mostLost} OR retried_as IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM children WHERE children.run_id = runs.run_id AND tidied_at IS NULL
      AND (attachments IS NOT NULL OR (cleanup = 'keep' AND archive_after IS NOT NULL)))
    ORDER BY ended_at LIMIT ?`;
  const oldOut =
    "SELECT seq FROM outbox WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?";
  const oldRoots = "SELECT root FROM budgets WHERE touched_at < ? ORDER BY touched_at LIMIT ?";
  const isThere = (sql: string) => books.get(sql, before, 1) !== undefined;
  if (![old, oldOut, oldRoots].some(isThere)) return;
  books.change("unsynced", () => {
    for (const { seq } of books.all(old, before, mostForgotten)) forgetRun(books, Number(seq));
    for (const { seq } of books.all(oldOut, before, mostForgotten))
      books.run("DELETE FROM outbox WHERE seq = ?", Number(seq));
    for (const { root } of books.all(oldRoots, before, mostForgotten))
      if (!forgetRoot(books, String(root)))
        books.run("UPDATE budgets SET touched_at = ? WHERE root = ?", before + keepMs, String(root));
  });
}

/** A run with everything that hangs on it. */
export function forgetRun(books: Books, seq: number): void {
  const runId = String(books.get("SELECT run_id FROM runs WHERE seq = ?", seq)?.run_id);
  books.run("DELETE FROM approvals WHERE run_id = ?", runId);
  books.run("DELETE FROM run_partials WHERE run_id = ?", runId);
  books.run("DELETE FROM run_waits WHERE from_run = ? OR to_run = ?", runId, runId);
  books.run("DELETE FROM run_replies WHERE run_id = ?", runId);
  books.run("DELETE FROM children WHERE run_id = ?", runId);
  books.run("DELETE FROM run_inputs WHERE seq = ?", seq);
  books.run("DELETE FROM runs WHERE seq = ?", seq);
}

/** The budget of a request. `false`: runs of it are left, and it is kept. */
export function forgetRoot(books: Books, root: string): boolean {
  if (books.get("SELECT 1 FROM runs WHERE root = ? LIMIT 1", root) !== undefined) return false;
  books.run("DELETE FROM budget_pairs WHERE root = ?", root);
  books.run("DELETE FROM budgets WHERE root = ?", root);
  return true;
}

function nextTime(books: Books): number | null {
  const times = [
    "SELECT min(lease_until) AS at FROM runs INDEXED BY runs_active WHERE state IN ('running', 'waiting')",
    "SELECT min(wake_at) AS at FROM runs WHERE state = 'sleeping'",
    "SELECT min(deadline) AS at FROM runs WHERE state = 'queued' AND deadline IS NOT NULL",
    "SELECT min(expires_at) AS at FROM approvals WHERE answer IS NULL",
  ].flatMap((sql) => {
    const at = books.get(sql)?.at;
    return at === null || at === undefined ? [] : [Number(at)];
  });
  const all = [...times, nextCompanyAt(books) ?? []].flat();
  return all.length === 0 ? null : Math.min(...all);
}
