import type { Content } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { InputKind } from "../contract.ts";
import type { Books } from "./books.ts";
import { putOutbox } from "./outbox-rows.ts";
import type { RunRow } from "./rows.ts";

/** What other sessions sent: it is theirs too, and does not vanish with the session that it was for. */
const fromSessions: readonly InputKind[] = ["announce", "send"];

/** Whether it came from another session and nobody has read it. */
export function isUnread(row: RunRow): boolean {
  return !row.isWritten && fromSessions.includes(row.kind);
}

/** Nobody is left to read it: a dead letter. */
export function bury(books: Books, row: RunRow): void {
  const { session, runId } = row;
  const content = "content" in row.message ? (row.message.content as Content) : "";
  const error = `Session ${session.sessionId} was removed before it read this.`;
  const target = { channel: "session", to: session.key };
  const letter = { session, runId, target, text: textOf(content), idempotencyKey: `unread:${runId}` };
  putOutbox(books, letter, error);
}
