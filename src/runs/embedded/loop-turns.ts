import { SkeinError } from "../../core/errors.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { Books } from "./books.ts";

/**
 * Turns that an agent loop of the user's own has open in a session. No process claims a run of such a session: input waits
 * until the turn ends, its process dies, or nothing was appended for ten minutes.
 */

/** How long a turn stays open without another message. A step of a model, with its tools, takes less. */
export const loopTurnMs = 10 * 60_000;

/** Opens the turn, or extends it. Returns whether it is new. Throws `conflict` where another process has one open. */
export function openLoopTurn(
  books: Books,
  { uid, sessionId }: Pick<SessionRef, "uid" | "sessionId">,
  owner: string,
): boolean {
  const isNew = books.change("unsynced", () => {
    const current = loopTurnOwner(books, uid);
    if (current !== null && current !== owner) throw answeredElsewhere(sessionId);
    const sql = "INSERT OR REPLACE INTO loop_turns (uid, owner, lease_until) VALUES (?, ?, ?)";
    books.run(sql, uid, owner, books.now() + loopTurnMs);
    return current === null;
  });
  books.ownLoopTurns.add(uid);
  return isNew;
}

/** Throws `conflict` where another process has a turn open. */
export function checkLoopTurn(books: Books, { uid, sessionId }: Pick<SessionRef, "uid" | "sessionId">): void {
  if (!books.ownLoopTurns.has(uid) && loopTurnOwner(books, uid) !== null) throw answeredElsewhere(sessionId);
}

function answeredElsewhere(sessionId: string): SkeinError {
  const problem = `An agent loop of another process is answering in session ${sessionId}`;
  return new SkeinError("conflict", { problem, advice: "Try again when that turn has ended" });
}

/** Ends the owner's turn in one session; `uid` null: in all of them. Returns whether one was open. */
export function endLoopTurns(books: Books, uid: string | null, owner: string): boolean {
  if (uid === null) books.ownLoopTurns.clear();
  else books.ownLoopTurns.delete(uid);
  return books.change("unsynced", () => {
    const isOpen = books.get(
      "SELECT 1 FROM loop_turns WHERE owner = ? AND uid = coalesce(?, uid)",
      owner,
      uid,
    );
    if (isOpen === undefined) return false;
    books.run("DELETE FROM loop_turns WHERE owner = ? AND uid = coalesce(?, uid)", owner, uid);
    return true;
  });
}

/** The process whose loop has a turn open in the session; `null`: none. */
export function loopTurnOwner(books: Books, uid: string): string | null {
  const row = books.get("SELECT owner, lease_until FROM loop_turns WHERE uid = ?", uid);
  if (row === undefined || Number(row.lease_until) <= books.now()) return null;
  return books.options.isGone(String(row.owner)) ? null : String(row.owner);
}
