import { present } from "../core/present.ts";
import type { HistoryPayload } from "../protocol/session-payloads.ts";
import type { Run } from "../runs/contract.ts";
import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import type { HistoryRange, Seen } from "./history.ts";
import { defaultLimit, shownContent, whole, withinBytes } from "./history.ts";
import { readHistoryRange } from "./history-range.ts";

/** The same page as `historyOf` gives of a tree, read from a store page by page: what is not shown is not read. */
export async function readHistory(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: Pick<SessionRecord, "key" | "sessionId">,
  range: HistoryRange = {},
  pending: readonly Run[] = [],
  seen: Seen = whole,
): Promise<HistoryPayload> {
  const limit = range.limit ?? defaultLimit;
  const slice = await readHistoryRange(sessions, scope, sessionId, { ...range, limit });
  const { page, cut } = withinBytes(slice.entries, range.after !== undefined, seen);
  const waiting = pending.map((run) => pendingMessage(run, seen));
  const [first, last] = [page[0]?.id, page.at(-1)?.id];
  return {
    sessionKey: key,
    sessionId,
    leafId: slice.leafId,
    messages: page,
    ...present({
      nextBefore: first !== undefined && (await slice.hasBefore(first)) ? first : null,
      nextAfter: last !== undefined && (await slice.hasAfter(last)) ? last : null,
    }),
    pending: waiting.map(({ message }) => message),
    truncated: cut || waiting.some((each) => each.cut),
  };
}

/** Input that is accepted and waits for its turn, as a message of the history would be. */
function pendingMessage({ runId, message, createdAt, state }: Run, seen: Seen) {
  const { role } = message;
  const { content, cut } = shownContent(role, "content" in message ? message.content : "", seen);
  return { message: { runId, role, content, timestamp: createdAt, state }, cut };
}
