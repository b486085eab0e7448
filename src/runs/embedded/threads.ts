import type { ThreadRef } from "../contract.ts";
import type { Books } from "./books.ts";

/** Threads of channels, and the session that each belongs to. */

export function bindTo(books: Books, userId: string | null, thread: ThreadRef, key: string): void {
  books.run(
    "INSERT OR REPLACE INTO threads (user, channel, account, thread, key) VALUES (?, ?, ?, ?, ?)",
    userId ?? "",
    ...placeOf(thread),
    key,
  );
}

export function keyBoundTo(books: Books, userId: string | null, thread: ThreadRef): string | null {
  const sql = "SELECT key FROM threads WHERE user = ? AND channel = ? AND account = ? AND thread = ?";
  const row = books.get(sql, userId ?? "", ...placeOf(thread));
  return row === undefined ? null : String(row.key);
}

/** The threads and the app of a key that no session has any more. */
export function unbind(books: Books, userId: string | null, key: string): void {
  if (books.sessionAt(userId, { key }) !== null) return;
  for (const table of ["threads", "session_apps"])
    books.run(`DELETE FROM ${table} WHERE user = ? AND key = ?`, userId ?? "", key);
}

function placeOf({ channel, accountId, threadId }: ThreadRef): [string, string, string] {
  return [channel, accountId ?? "", threadId];
}
