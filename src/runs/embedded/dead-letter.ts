import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { SessionRef } from "../../core/session-ref.ts";
import type { InputKind } from "../contract.ts";
import type { Books } from "./books.ts";
import { putOutbox } from "./outbox-rows.ts";
import type { RunRow } from "./rows.ts";

/** What other sessions sent: it is theirs too, and does not vanish with the session that it was for. */
const fromSessions: readonly InputKind[] = ["announce", "send", "ping_pong"];

/** Whether it came from another session and nobody has read it. */
export function isUnread(row: RunRow): boolean {
  return !row.isWritten && fromSessions.includes(row.kind);
}

/**
 * Nobody is left to read it: a dead letter. It is the sender's, who is told of it when the outbox finds nobody to give it
 * to, and it does not go with the removed session. Where no sender is known there is nobody to tell, and it is dead at once.
 */
export function bury(books: Books, row: RunRow): void {
  const { session, runId } = row;
  const content = "content" in row.message ? (row.message.content as Content) : "";
  const target = { channel: "session", to: session.key };
  const letter = { target, text: textOf(content), idempotencyKey: `unread:${runId}` };
  const sender = senderOf(books, row);
  if (sender !== null) putOutbox(books, { ...letter, session: sender, runId: row.startedBy });
  else {
    const error = `Session ${session.sessionId} was removed before it read this.`;
    putOutbox(books, { ...letter, session, runId }, error);
  }
}

/** The session that has run last under the key that it came from. */
function senderOf(books: Books, { provenance, user, session }: RunRow): SessionRef | null {
  const key = provenance?.sourceSessionKey;
  if (key === undefined) return null;
  const where = "user = ? AND key = ? AND uid <> ? ORDER BY seq DESC LIMIT 1";
  return books.rows(where, user, key, session.uid)[0]?.session ?? null;
}
