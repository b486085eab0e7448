import { cutText } from "../../core/text.ts";
import type { AcceptRequest, InputKind, OutboxRow } from "../contract.ts";
import type { RunRow } from "./run-ledger.ts";

const fromSessions: readonly InputKind[] = ["announce", "send", "ping_pong"];

/** Whether this is unread input from another session. Such input must not be lost with its target session. */
export function isUnreadDelivery(row: RunRow): boolean {
  return !row.isWritten && fromSessions.includes(row.kind);
}

const longestQuote = 200;

/**
 * Returns a note that informs the session that sent an undelivered message. It calls no model. It is accepted in the
 * transaction that ends the message, because a crash between two transactions would lose it.
 */
export function noticeOf({ outboxId, session, target, text, lastError, endedAt }: OutboxRow): AcceptRequest {
  const to = target.to === undefined ? "" : ` to ${target.to}`;
  const why = lastError === null ? "" : ` (${lastError})`;
  const content = `[Skein] A message${to} over ${target.channel} was not delivered${why}: ${cutText(text, longestQuote)}`;
  return {
    session,
    kind: "note",
    message: { role: "custom", customType: "skein.outbox", content, display: true },
    // A message that fails again after a retry is reported again.
    idempotencyKey: `dead:${outboxId}:${endedAt ?? 0}`,
    queueMode: "followup",
    isDelivery: true,
  };
}
