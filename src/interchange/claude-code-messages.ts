import { isRecord } from "../core/is-record.ts";
import type { AssistantBlock, ImageBlock, TextBlock, ToolCallBlock } from "../core/messages.ts";
import { isUsableBlock } from "../core/messages.ts";
import type { EntryDraft } from "../core/seal.ts";
import { readThinkingLevel } from "../core/thinking-levels.ts";
import type { ClaudeLine } from "./claude-code-lines.ts";
import type { AnswerDraft, Losses, ResultDraft } from "./imported-session.ts";
import { convertBlocks, noCost, shortType, toArguments } from "./imported-session.ts";
import type { JsonObject } from "./json-lines.ts";
import { countField, objectField, textField } from "./json-lines.ts";

/** Converts Claude Code's messages, which use Anthropic's format, to entry drafts. */

/** A user line contains tool results, a prompt or both. In the drafts, the results come first. */
export function userDrafts(
  line: ClaudeLine,
  toolName: (callId: string) => string,
  losses: Losses,
): { results: ResultDraft[]; prompt: EntryDraft | null } {
  const content = objectField(line.value, "message")?.content;
  const blocks = Array.isArray(content) ? content : [];
  const isResult = (block: unknown) => isRecord(block) && block.type === "tool_result";
  const found = blocks.filter(isResult) as JsonObject[];
  const details = line.value.toolUseResult;
  if (details !== undefined && found.length !== 1)
    losses.add("The details of several results on one line were left out.", line.uuid ?? undefined);
  const more = details !== undefined && found.length === 1 ? { details } : {};
  const results = found.flatMap((block): ResultDraft[] => {
    const toolCallId = textField(block, "tool_use_id");
    if (toolCallId === null) {
      losses.add("A tool result without a call ID was left out.", line.uuid ?? undefined);
      return [];
    }
    const result = { toolCallId, toolName: toolName(toolCallId), content: toContent(block.content, losses) };
    const isError = block.is_error === true;
    return [{ type: "message", message: { role: "toolResult", ...result, ...more, isError } }];
  });
  const rest = Array.isArray(content) ? blocks.filter((block) => !isResult(block)) : content;
  const hasOnlyResults = Array.isArray(rest) && rest.length === 0 && found.length > 0;
  return { results, prompt: hasOnlyResults ? null : promptDraft(line, rest, losses) };
}

/** Text that Claude Code inserted itself is sent to the model as user text, but not displayed. */
function promptDraft(line: ClaudeLine, source: unknown, losses: Losses): EntryDraft {
  const content = typeof source === "string" ? source : toContent(source, losses);
  if (typeof source !== "string" && !Array.isArray(source))
    losses.add(
      "A message whose content is neither text nor blocks was imported as an empty message.",
      line.uuid ?? undefined,
    );
  if (line.value.isMeta !== true) return { type: "message", message: { role: "user", content } };
  return { type: "custom_message", customType: "claude-code.meta", content, display: false };
}

/** The model in Claude Code's own messages, such as provider errors. */
const syntheticModel = "<synthetic>";

/** `model` is used if the line does not contain one. */
export function answerDraft(line: ClaudeLine, model: string | null, losses: Losses): AnswerDraft {
  const { value } = line;
  const message = objectField(value, "message") ?? {};
  const content = convertBlocks(message.content, (block) => toAssistantBlock(block, losses));
  const named = textField(message, "model");
  const isError = value.isApiErrorMessage === true;
  const text = content.find((block) => block.type === "text")?.text ?? "The provider returned an error.";
  return {
    type: "message",
    message: {
      role: "assistant",
      content,
      api: "anthropic-messages",
      provider: "anthropic",
      // An empty model means that the model is unknown. The context then has no model.
      model: (named === syntheticModel ? model : named) ?? "",
      usage: toUsage(objectField(message, "usage") ?? {}, countField(value, "costUSD")),
      stopReason: isError ? "error" : toStopReason(message.stop_reason, content),
      ...(isError ? { errorMessage: text } : {}),
    },
  };
}

/** Returns the model, or `null` if the line was not written by a model. */
export function modelOf(line: ClaudeLine): string | null {
  const model = textField(objectField(line.value, "message") ?? {}, "model");
  return model === syntheticModel ? null : model;
}

/** Appends another line of the same answer. The last line's usage and stop reason are used. */
export function mergeAnswers(first: AnswerDraft, more: AnswerDraft, losses: Losses): void {
  const known = new Set(callsIn(first).map(({ id }) => id));
  const fresh = more.message.content.filter((block) => block.type !== "toolCall" || !known.has(block.id));
  if (fresh.length < more.message.content.length)
    losses.add("A duplicate tool call was left out.", callsIn(more)[0]?.id);
  Object.assign(first.message, { ...more.message, content: [...first.message.content, ...fresh] });
  if (first.message.stopReason === "stop" && callsIn(first).length > 0) first.message.stopReason = "toolUse";
}

export function callsIn({ message }: AnswerDraft): ToolCallBlock[] {
  return message.content.filter((block) => block.type === "toolCall");
}

/** Returns the thinking level for a prompt, or `null` if the line does not contain one. */
export function thinkingLevelOf(line: ClaudeLine): string | null {
  const level = objectField(line.value, "thinkingMetadata")?.level;
  return level === "none" ? "off" : readThinkingLevel(level);
}

/** Blocks with other types are kept unchanged. Readers ignore them. */
export function toContent(content: unknown, losses: Losses): (TextBlock | ImageBlock)[] {
  return convertBlocks(content, (block) => {
    if (typeof block === "string") return { type: "text", text: block };
    if (!isRecord(block) || typeof block.type !== "string") return dropBlock(losses);
    if (block.type === "text") return toTextBlock(block, losses);
    const image = block.type === "image" ? toImageBlock(objectField(block, "source")) : null;
    // An image reference must not be mistaken for an inline image.
    const type = block.type === "image" ? "image_reference" : block.type;
    return image ?? keepBlock<TextBlock>({ ...block, type }, block.type, losses);
  });
}

function toAssistantBlock(block: unknown, losses: Losses): AssistantBlock | null {
  if (!isRecord(block) || typeof block.type !== "string") return dropBlock(losses);
  switch (block.type) {
    case "text":
      return toTextBlock(block, losses);
    case "thinking": {
      const thinking = textField(block, "thinking") ?? "";
      const signature = textField(block, "signature");
      if (thinking === "" && !signature) return dropBlock(losses);
      return { type: "thinking", thinking, ...(signature ? { thinkingSignature: signature } : {}) };
    }
    case "redacted_thinking": {
      const data = textField(block, "data") ?? "";
      return { type: "thinking", thinking: "", thinkingSignature: data, redacted: true };
    }
    case "tool_use": {
      const [id, name] = [textField(block, "id"), textField(block, "name")];
      if (id === null || name === null) return dropBlock(losses);
      return { type: "toolCall", id, name, arguments: toArguments(block.input) };
    }
    default:
      return isUsableBlock("assistant", block) ? keepBlock(block, block.type, losses) : dropBlock(losses);
  }
}

function toTextBlock(block: JsonObject, losses: Losses): TextBlock | null {
  const text = textField(block, "text");
  return text === null ? dropBlock(losses) : { type: "text", text };
}

function toImageBlock(source: JsonObject | null): ImageBlock | null {
  if (source?.type !== "base64") return null;
  const [data, mimeType] = [textField(source, "data"), textField(source, "media_type")];
  return data === null || mimeType === null ? null : { type: "image", data, mimeType };
}

function keepBlock<B>(block: JsonObject, type: string, losses: Losses): B {
  losses.add(`A block of type "${shortType(type)}" is kept, but is not sent to models.`);
  return block as B;
}

function dropBlock(losses: Losses): null {
  losses.add("A message block without a type or content was left out.");
  return null;
}

function toUsage(usage: JsonObject, cost: number): AnswerDraft["message"]["usage"] {
  const input = countField(usage, "input_tokens");
  const output = countField(usage, "output_tokens");
  const cacheRead = countField(usage, "cache_read_input_tokens");
  const cacheWrite = countField(usage, "cache_creation_input_tokens");
  const totalTokens = input + output + cacheRead + cacheWrite;
  return { input, output, cacheRead, cacheWrite, totalTokens, cost: { ...noCost, total: cost } };
}

type StopReason = AnswerDraft["message"]["stopReason"];

const stopReasons: ReadonlyMap<unknown, StopReason> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "toolUse"],
  ["refusal", "error"],
]);

/** Most versions write the reason only on an answer's last line, and some never write it. */
function toStopReason(reason: unknown, content: readonly AssistantBlock[]): StopReason {
  const hasCalls = content.some((block) => block.type === "toolCall");
  return stopReasons.get(reason) ?? (hasCalls ? "toolUse" : "stop");
}
