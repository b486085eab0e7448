import type { AssistantBlock, ImageBlock, TextBlock } from "../core/messages.ts";
import { isRecord, isUsableBlock } from "../core/shape.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { countField, objectField, textField } from "./json-lines.ts";
import type { AnswerDraft } from "./message-drafts.ts";
import { argumentsOf, noCost, shortType } from "./message-drafts.ts";

/** The content blocks of Anthropic's messages, as ours. */

type Block = TextBlock | ImageBlock;
type AssistantDraft = AnswerDraft["message"];

/** Text and images; anything else stays as it is, which every reader passes by. */
export function contentBlocks(content: unknown, losses: Losses): Block[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block) => contentBlock(block, losses) ?? []);
}

function contentBlock(block: unknown, losses: Losses): Block | null {
  if (typeof block === "string") return { type: "text", text: block };
  if (!isRecord(block) || typeof block.type !== "string") return lostBlock(losses);
  if (block.type === "text") {
    const text = textField(block, "text");
    return text === null ? lostBlock(losses) : { type: "text", text };
  }
  const image = block.type === "image" ? imageBlock(objectField(block, "source")) : null;
  if (image !== null) return image;
  losses.add(`A block of type "${shortType(block.type)}" is kept, but no model is shown it.`);
  // An image that is not inline would be read as one of ours, and a wrong one.
  return (block.type === "image" ? { ...block, type: "image_reference" } : block) as unknown as Block;
}

function imageBlock(source: JsonObject | null): ImageBlock | null {
  if (source?.type !== "base64") return null;
  const [data, mimeType] = [textField(source, "data"), textField(source, "media_type")];
  return data === null || mimeType === null ? null : { type: "image", data, mimeType };
}

export function assistantBlocks(content: unknown, losses: Losses): AssistantBlock[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.flatMap((block) => assistantBlock(block, losses) ?? []);
}

function assistantBlock(block: unknown, losses: Losses): AssistantBlock | null {
  if (!isRecord(block) || typeof block.type !== "string") return lostBlock(losses);
  switch (block.type) {
    case "text": {
      const text = textField(block, "text");
      return text === null ? lostBlock(losses) : { type: "text", text };
    }
    case "thinking": {
      const thinking = textField(block, "thinking") ?? "";
      const signature = textField(block, "signature");
      if (thinking === "" && !signature) return lostBlock(losses);
      return { type: "thinking", thinking, ...(signature ? { thinkingSignature: signature } : {}) };
    }
    case "redacted_thinking": {
      const data = textField(block, "data") ?? "";
      return { type: "thinking", thinking: "", thinkingSignature: data, redacted: true };
    }
    case "tool_use": {
      const [id, name] = [textField(block, "id"), textField(block, "name")];
      if (id === null || name === null) return lostBlock(losses);
      return { type: "toolCall", id, name, arguments: argumentsOf(block.input) };
    }
    default:
      if (!isUsableBlock("assistant", block)) return lostBlock(losses);
      losses.add(`A block of type "${shortType(block.type)}" is kept, but no model is shown it.`);
      return block as unknown as AssistantBlock;
  }
}

function lostBlock(losses: Losses): null {
  losses.add("A block of a message that has no type or lacks its content was left out.");
  return null;
}

export function claudeUsage(usage: JsonObject | null, cost: number): AssistantDraft["usage"] {
  const from = usage ?? {};
  const input = countField(from, "input_tokens");
  const output = countField(from, "output_tokens");
  const cacheRead = countField(from, "cache_read_input_tokens");
  const cacheWrite = countField(from, "cache_creation_input_tokens");
  const totalTokens = input + output + cacheRead + cacheWrite;
  return { input, output, cacheRead, cacheWrite, totalTokens, cost: { ...noCost, total: cost } };
}

const stopReasons: ReadonlyMap<unknown, AssistantDraft["stopReason"]> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "toolUse"],
  ["refusal", "error"],
]);

/** Most versions write it on the last line of an answer alone, some on none. */
export function claudeStopReason(
  reason: unknown,
  content: readonly AssistantBlock[],
): AssistantDraft["stopReason"] {
  const calls = content.some((block) => block.type === "toolCall");
  return stopReasons.get(reason) ?? (calls ? "toolUse" : "stop");
}
