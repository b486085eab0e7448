import { usageOf } from "../../agents/models/assistant-message.ts";
import type { Entry } from "../../core/entries.ts";
import { isRecord } from "../../core/is-record.ts";
import { stringifyJson } from "../../core/json.ts";
import type { AssistantMessage, Content, ImageBlock, Message, TextBlock } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import type { EntryDraft, MessageDraft } from "../../core/seal.ts";
import { cutText } from "../../core/text.ts";

/** An item of the OpenAI Agents SDK, as JSON. */
export type Item = { readonly [field: string]: unknown };

/** The key of the original item in an entry. No provider reads it. */
const ownKey = "openai-agents";

/** Converts an item to an entry that people and other models can read, and that keeps the item unchanged. */
export function draftOfItem(given: Item): EntryDraft {
  const item = storable(given) as Item;
  const message = messageOfItem(item);
  if (message !== null) return { type: "message", message };
  const type = String(item.type ?? item.role ?? "item");
  return {
    type: "custom_message",
    customType: `${ownKey}.${type}`,
    content: summaryOf(item, type),
    display: true,
    details: { [ownKey]: { item } },
  };
}

function messageOfItem(item: Item): MessageDraft | null {
  const skein = { providerMetadata: { [ownKey]: { item } } };
  const { type = "message", role, callId, name } = item;
  if (type === "message" && role === "user") return { role: "user", content: blocksOf(item.content), skein };
  if (type === "message" && role === "assistant")
    return { ...answer, content: [{ type: "text", text: textIn(item.content) }], skein };
  if (type === "reasoning")
    return { ...answer, content: [{ type: "thinking", thinking: textIn(item.content) }], skein };
  if (type === "function_call" && typeof callId === "string" && typeof name === "string") {
    const call = { type: "toolCall", id: callId, name, arguments: argumentsOf(item.arguments) } as const;
    return { ...answer, content: [call], stopReason: "toolUse", skein };
  }
  if (type === "function_call_result" && typeof callId === "string") {
    const content = blocksOf(item.output);
    const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
    const isError = item.status === "incomplete";
    return {
      role: "toolResult",
      toolCallId: callId,
      toolName: String(name ?? "unknown"),
      content: blocks,
      isError,
      skein,
    };
  }
  return null;
}

/** The SDK does not tell a session which model answered. */
const answer = {
  role: "assistant",
  api: "unknown",
  provider: "openai",
  model: "unknown",
  usage: usageOf(undefined),
  stopReason: "stop",
} as const;

/** Returns the content that models and people read. Files are kept only in the original item. */
function blocksOf(content: unknown): Exclude<Content, string> | string {
  if (typeof content === "string") return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  return parts.filter(isRecord).map(blockOf);
}

function blockOf(part: Item): TextBlock | ImageBlock {
  if (typeof part.text === "string") return { type: "text", text: part.text };
  const image = /^data:(image\/[^;,]+);base64,(.+)$/s.exec(String(part.image ?? ""));
  if (image !== null) return { type: "image", mimeType: image[1] as string, data: image[2] as string };
  return { type: "text", text: `[${String(part.type ?? "part")}]` };
}

function textIn(content: unknown): string {
  const blocks = blocksOf(content);
  return typeof blocks === "string" ? blocks : textOf(blocks);
}

function argumentsOf(text: unknown): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(String(text));
    return isRecord(value) ? value : { input: value };
  } catch {
    return { input: String(text) };
  }
}

/** In characters. The summary of a longer item, such as a screenshot, is truncated. The original item is complete. */
const maxSummary = 2000;

function summaryOf(item: Item, type: string): string {
  if (typeof item.content === "string") return item.content;
  const { name, action, output } = item;
  const told = [name, action, output]
    .filter((value) => value !== undefined)
    .map((value) => textOfValue(value));
  return cutText([`[${type}]`, ...told].join(" "), maxSummary);
}

function textOfValue(value: unknown): string {
  return typeof value === "string" ? value : stringifyJson(value);
}

/**
 * Returns the items of an entry. An entry that this adapter wrote contains its original item. An entry that another
 * program wrote is converted to items with the same content.
 */
export function itemsOfEntry(entry: Entry): Item[] {
  if (entry.type === "custom_message") return heldItem(entry.details);
  if (entry.type !== "message") return [];
  const { message } = entry;
  const held = "skein" in message ? heldItem(message.skein?.providerMetadata) : [];
  return held.length > 0 ? held : itemsOfMessage(message);
}

function heldItem(holder: unknown): Item[] {
  const own = isRecord(holder) ? holder[ownKey] : undefined;
  return isRecord(own) && isRecord(own.item) ? [restored(own.item) as Item] : [];
}

function itemsOfMessage(message: Message): Item[] {
  switch (message.role) {
    case "user":
      return [{ type: "message", role: "user", content: inputOf(message.content) }];
    case "assistant":
      return itemsOfAnswer(message);
    case "toolResult": {
      const { toolCallId: callId, toolName: name = "unknown", content } = message;
      const output = { type: "text", text: textOf(content) };
      return [{ type: "function_call_result", callId, name, status: "completed", output }];
    }
    default:
      return [];
  }
}

function inputOf(content: Content): unknown {
  if (typeof content === "string") return content;
  return content.map((block) =>
    block.type === "text"
      ? { type: "input_text", text: block.text }
      : { type: "input_image", image: `data:${block.mimeType};base64,${block.data}` },
  );
}

/** Omits thinking, because another provider's thinking cannot be sent to OpenAI. */
function itemsOfAnswer({ content }: AssistantMessage): Item[] {
  return content.flatMap((block): Item[] => {
    if (block.type === "toolCall") {
      const { id: callId, name, arguments: input } = block;
      return [{ type: "function_call", callId, name, status: "completed", arguments: stringifyJson(input) }];
    }
    if (block.type !== "text" || block.text === "") return [];
    const text = { type: "output_text", text: block.text };
    return [{ type: "message", role: "assistant", status: "completed", content: [text] }];
  });
}

const bytesKey = "$bytes";

/** Returns the value as JSON. Binary data becomes base64, and undefined fields are dropped, as JSON does. */
export function storable(value: unknown): unknown {
  if (value instanceof Uint8Array) return { [bytesKey]: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return value.map(storable);
  if (!isRecord(value)) return value;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, storable(field)]));
}

function restored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(restored);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value);
  const bytes = value[bytesKey];
  if (entries.length === 1 && typeof bytes === "string") return new Uint8Array(Buffer.from(bytes, "base64"));
  return Object.fromEntries(entries.map(([name, field]) => [name, restored(field)]));
}
