import { SkeinError } from "../core/errors.ts";
import type { CompactedPayload } from "../protocol/session-changes.ts";
import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";
import { estimateTokens } from "../transcript/estimate-tokens.ts";
import { visibleMessage } from "../transcript/visible-message.ts";

/** Writes a compaction with a summary that somebody made. `conflict` when the session goes on meanwhile. */
export async function compactByHand(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId, leafId }: SessionRecord,
  { summary, keepFrom }: { readonly summary: string; readonly keepFrom: string },
): Promise<CompactedPayload> {
  if (summary.trim() === "") {
    throw new SkeinError("invalid_arguments", {
      problem: "The summary is empty",
      advice: "Say in it what was said before the first kept entry",
    });
  }
  const first = await sessions.entry(scope, sessionId, keepFrom);
  if (first?.type === "message" && first.message.role === "toolResult") {
    throw new SkeinError("invalid_arguments", {
      problem: `${keepFrom} is a tool result, and its call would be gone`,
      advice: "Keep from the message with the call, or from a later one",
    });
  }
  const context = (await sessions.context(scope, sessionId)) ?? noSuchSession(sessionId);
  const tokensBefore = estimateTokens(
    context.messages.map(visibleMessage).filter((message) => message !== null),
  );
  const draft = { type: "compaction", summary, firstKeptEntryId: keepFrom, tokensBefore } as const;
  const { entries } = await sessions.append(scope, sessionId, [{ draft }], { expectedLeafId: leafId });
  return { key, sessionId, entryId: entries[0]?.id ?? "", firstKeptEntryId: keepFrom, tokensBefore };
}
