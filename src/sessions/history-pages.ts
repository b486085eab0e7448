import { present } from "../core/present.ts";
import { Slices } from "../core/slices.ts";
import type { HistoryPayload } from "../protocol/session-payloads.ts";
import type { Run } from "../runs/contract.ts";
import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import type { HistoryRange, Seen } from "./history.ts";
import { defaultLimit, mostBytes, shownContent, tooLargeToShow, whole, withinBytes } from "./history.ts";
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
  const { page, cut } = await new Slices().run(withinBytes(slice.entries, range.after !== undefined, seen));
  const waiting = pendingMessages(pending, seen);
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
    pending: waiting.messages,
    truncated: cut || waiting.cut,
  };
}

/** Input that is accepted and waits for its turn, as messages of the history would be. */
function pendingMessages(
  runs: readonly Run[],
  seen: Seen,
): { readonly messages: HistoryPayload["pending"]; readonly cut: boolean } {
  const messages: HistoryPayload["pending"] = [];
  let [bytes, cut] = [0, false];
  for (const { runId, message, createdAt, state } of runs) {
    const { role } = message;
    const shown = shownContent(role, "content" in message ? message.content : "", seen);
    const hasRoom = bytes + shown.bytes <= mostBytes;
    const content = hasRoom ? shown.content : tooLargeToShow(shown.bytes);
    if (hasRoom) bytes += shown.bytes;
    cut ||= shown.cut || !hasRoom;
    messages.push({ runId, role, content, timestamp: createdAt, state });
  }
  return { messages, cut };
}
