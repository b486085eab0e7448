import type { AssistantBlock, ToolCallBlock } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import { isRecord } from "../core/shape.ts";
import { assistantBlocks, claudeStopReason, claudeUsage, contentBlocks } from "./claude-code-blocks.ts";
import type { ClaudeLine } from "./claude-code-lines.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { countField, objectField, textField } from "./json-lines.ts";
import type { AnswerDraft, ResultDraft } from "./message-drafts.ts";

/** What a line of Claude Code says, as drafts of ours. */

/** A user line holds results of calls, or what was said, or both; the results come first. */
export function userDrafts(
  line: ClaudeLine,
  toolName: (callId: string) => string,
  losses: Losses,
): { results: ResultDraft[]; said: EntryDraft | null } {
  const content = objectField(line.value, "message")?.content;
  const blocks = Array.isArray(content) ? content : [];
  const isResult = (block: unknown) => isRecord(block) && block.type === "tool_result";
  const found = blocks.filter(isResult) as JsonObject[];
  const details = line.value.toolUseResult;
  if (details !== undefined && found.length !== 1)
    losses.add("The details of results that share a line were left out.", line.uuid ?? undefined);
  const results = found.flatMap((block) => {
    const toolCallId = textField(block, "tool_use_id");
    if (toolCallId === null) {
      losses.add("A result that names no call was left out.", line.uuid ?? undefined);
      return [];
    }
    const more = details !== undefined && found.length === 1 ? { details } : {};
    return [resultDraft(block, toolCallId, toolName(toolCallId), more, losses)];
  });
  const rest = Array.isArray(content) ? blocks.filter((block) => !isResult(block)) : content;
  const nothing = Array.isArray(rest) && rest.length === 0 && found.length > 0;
  return { results, said: nothing ? null : saidDraft(line, rest, losses) };
}

function resultDraft(
  block: JsonObject,
  toolCallId: string,
  toolName: string,
  more: { details?: unknown },
  losses: Losses,
): ResultDraft {
  const content = contentBlocks(block.content, losses);
  const isError = block.is_error === true;
  return {
    type: "message",
    message: { role: "toolResult", toolCallId, toolName, content, ...more, isError },
  };
}

/** What Claude Code put in itself reaches the model as if a user had said it, but is not shown to people. */
function saidDraft(line: ClaudeLine, content: unknown, losses: Losses): EntryDraft {
  const ours = typeof content === "string" ? content : contentBlocks(content, losses);
  if (typeof content !== "string" && !Array.isArray(content))
    losses.add("A message whose content is neither text nor blocks is empty.", line.uuid ?? undefined);
  if (line.value.isMeta !== true) return { type: "message", message: { role: "user", content: ours } };
  return { type: "custom_message", customType: "claude-code.meta", content: ours, display: false };
}

/** Model of messages that Claude Code made up itself, such as errors of the provider. */
const madeUp = "<synthetic>";

/** An assistant line; `model` stands in where no model answered. */
export function answerDraft(line: ClaudeLine, model: string | null, losses: Losses): AnswerDraft {
  const { value } = line;
  const message = objectField(value, "message") ?? {};
  const content = assistantBlocks(message.content, losses);
  const named = textField(message, "model");
  const failed = value.isApiErrorMessage === true;
  const text = content.find((block) => block.type === "text")?.text ?? "The provider answered with an error.";
  return {
    type: "message",
    message: {
      role: "assistant",
      content,
      api: "anthropic-messages",
      provider: "anthropic",
      // Nothing here means that the model is not known: a context then names none.
      model: (named === madeUp ? model : named) ?? "",
      usage: claudeUsage(objectField(message, "usage"), countField(value, "costUSD")),
      stopReason: failed ? "error" : claudeStopReason(message.stop_reason, content),
      ...(failed ? { errorMessage: text } : {}),
    },
  };
}

/** The model that a line names, if one answered. */
export function modelOf(line: ClaudeLine): string | null {
  const model = textField(objectField(line.value, "message") ?? {}, "model");
  return model === madeUp ? null : model;
}

/** Adds a further line of the same answer: its blocks, and what it says last of usage and end. */
export function mergeAnswers(first: AnswerDraft, more: AnswerDraft, losses: Losses): void {
  const known = new Set(callsIn(first.message.content).map(({ id }) => id));
  const fresh = more.message.content.filter((block) => block.type !== "toolCall" || !known.has(block.id));
  if (fresh.length < more.message.content.length)
    losses.add("A call that an answer repeats was left out.", callsIn(more.message.content)[0]?.id);
  const content = [...first.message.content, ...fresh];
  const calls = callsIn(content).length > 0;
  const stopReason = more.message.stopReason === "stop" && calls ? "toolUse" : more.message.stopReason;
  Object.assign(first.message, { ...more.message, content, stopReason });
}

export function callsIn(content: readonly AssistantBlock[]): ToolCallBlock[] {
  return content.filter((block) => block.type === "toolCall");
}

const levels: ReadonlyMap<unknown, string> = new Map(
  ["off", "minimal", "low", "medium", "high", "xhigh"].map((level) => [level, level]),
);

/** The thinking level that a prompt was sent with, if it says. */
export function thinkingLevelOf(line: ClaudeLine): string | null {
  const level = objectField(line.value, "thinkingMetadata")?.level;
  return level === "none" ? "off" : (levels.get(level) ?? null);
}

const usedFields = new Set(
  [
    "type uuid parentUuid logicalParentUuid timestamp sessionId cwd message isSidechain isMeta isCompactSummary",
    "toolUseResult compactMetadata subtype content level attachment agentId isApiErrorMessage costUSD thinkingMetadata",
    "isVisibleInTranscriptOnly version gitBranch",
  ].flatMap((names) => names.split(" ")),
);

/** Fields that our entries have no place for. */
export function leftOutFields(line: ClaudeLine): string[] {
  return Object.keys(line.value).filter((field) => !usedFields.has(field) && line.value[field] !== null);
}
