import type { EntryDraft } from "../../core/seal.ts";
import type { ClaudeLine } from "../../interchange/claude-code-lines.ts";
import { answerDraft, toContent, userDrafts } from "../../interchange/claude-code-messages.ts";
import { Losses, noCost } from "../../interchange/imported-session.ts";
import { objectField, textField, timeField } from "../../interchange/json-lines.ts";

/** The facts about a session's earlier entries that are needed to convert the next entry. */
export interface ShownState {
  /** The names of the called tools, by call ID. */
  readonly toolNames: Map<string, string>;
  /**
   * The provider's IDs of the answers. Claude Code writes an answer as several entries, each with the usage of the
   * whole answer.
   */
  readonly answerIds: Set<string>;
  hasOwnTitle: boolean;
}

export function createShownState(): ShownState {
  return { toolNames: new Map(), answerIds: new Set(), hasOwnTitle: false };
}

/** Returns the entries of a Skein session that show an entry of Claude Code. Each one follows the previous one. */
export function toShownEntries(value: Readonly<Record<string, unknown>>, state: ShownState): EntryDraft[] {
  const line: ClaudeLine = {
    line: 0,
    type: textField(value, "type") ?? "",
    uuid: textField(value, "uuid"),
    parentUuid: textField(value, "parentUuid"),
    time: timeField(value, "timestamp") ?? 0,
    isSidechain: value.isSidechain === true,
    isAfterDamage: false,
    value,
  };
  if (objectField(value, "message") === null) return toTitle(line, state);
  if (line.type === "assistant") return [toAnswer(line, state)];
  if (line.type !== "user") return [];
  if (value.isCompactSummary === true) return [toCompaction(line)];
  const { results, prompt } = userDrafts(line, (id) => state.toolNames.get(id) ?? "unknown", new Losses());
  return prompt === null ? results : [...results, prompt];
}

function toAnswer(line: ClaudeLine, state: ShownState): EntryDraft {
  const draft = answerDraft(line, null, new Losses());
  for (const block of draft.message.content)
    if (block.type === "toolCall") state.toolNames.set(block.id, block.name);
  const answerId = textField(objectField(line.value, "message") ?? {}, "id");
  if (answerId !== null && state.answerIds.has(answerId))
    draft.message.usage = {
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { ...noCost },
    };
  if (answerId !== null) state.answerIds.add(answerId);
  return draft;
}

function toCompaction({ value }: ClaudeLine): EntryDraft {
  const content = objectField(value, "message")?.content;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const texts = toContent(blocks, new Losses()).flatMap((block) => (block.type === "text" ? block.text : []));
  return { type: "compaction", summary: texts.join("\n"), firstKeptEntryId: null, tokensBefore: 0 };
}

/** A title that a user chose takes precedence over a generated one. */
function toTitle({ type, value }: ClaudeLine, state: ShownState): EntryDraft[] {
  const own = type === "custom-title" ? textField(value, "customTitle") : null;
  const generated = type === "ai-title" && !state.hasOwnTitle ? textField(value, "aiTitle") : null;
  if (own !== null) state.hasOwnTitle = true;
  const name = own ?? generated;
  return name === null ? [] : [{ type: "session_info", name }];
}
