import { cutText } from "../core/text.ts";
import type { OutboxRow, RunStore } from "../runs/contract.ts";

const longestQuote = 200;

/** Tells the session that sent a message that nobody got it. It stands in the conversation, and no model is asked. */
export async function tellOfDeadLetter(runs: Pick<RunStore, "accept">, row: OutboxRow): Promise<void> {
  const { outboxId, session, target, text, lastError, endedAt } = row;
  const to = target.to === undefined ? "" : ` to ${target.to}`;
  const why = lastError === null ? "" : ` (${lastError})`;
  const content = `[Skein] A message${to} over ${target.channel} was not delivered${why}: ${cutText(text, longestQuote)}`;
  await runs.accept({
    session,
    kind: "note",
    message: { role: "custom", customType: "skein.outbox", content, display: true },
    // Sent again, and dead again, it is told again.
    idempotencyKey: `dead:${outboxId}:${endedAt ?? 0}`,
    queueMode: "followup",
    isDelivery: true,
  });
}
