import type { ContextMessage } from "../../core/context.ts";
import type { AssistantMessage, Content, TextBlock } from "../../core/messages.ts";
import { prependedContextType, textOf } from "../../core/messages.ts";
import type { Change, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder, Tell } from "../derive.ts";
import { derive, isImageBlob, prependText, replaceMessage } from "../derive.ts";
import { modelMessage } from "../model-message.ts";

type Block = AssistantMessage["content"][number] | Exclude<Content, string>[number];

const noOutput = "(no output)";

/**
 * Converts the context to the three roles that every provider supports. Drops failed answers, unknown roles and blocks,
 * and blank text. Repairs lone surrogates. An empty tool result becomes a note that there was no output.
 */
export function normalizeContext(
  messages: readonly ContextMessage[],
  { record }: { readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  let changed = false;
  const read: TranscriptMessage[] = [];
  for (const [place, message] of messages.entries()) {
    const after = readMessage(message, (kind, note) => changes.push(record(kind, note, message)));
    const before = messages[place - 1];
    const joined = after !== null && before !== undefined ? joinPrepended(before, read.at(-1), after) : null;
    if (joined !== null) read.pop();
    if (joined !== null || after !== message) changed = true;
    if (after !== null) read.push(joined ?? after);
  }
  return { messages: changed ? read : (messages as readonly TranscriptMessage[]), changes };
}

/** Joins the context prepended by hooks with its prompt. Returns `null` if the two messages do not form such a pair. */
function joinPrepended(
  before: ContextMessage,
  context: TranscriptMessage | undefined,
  prompt: TranscriptMessage,
): TranscriptMessage | null {
  if (before.role !== "custom" || before.customType !== prependedContextType) return null;
  if (context?.role !== "user" || prompt.role !== "user") return null;
  const text = textOf(context.content);
  if (text.trim() === "") return null;
  return derive(prompt, { content: prependText(prompt.content, text, "\n\n") });
}

function readMessage(message: ContextMessage, tell: Tell): TranscriptMessage | null {
  if (message.role === "assistant" && message.stopReason === "error") {
    tell("failed_answer", "The answer ended with an error and is omitted.");
    return null;
  }
  const visible = modelMessage(message);
  if (visible === null) {
    if (message.role !== "bashExecution")
      tell("unknown_role", `A message with the role ${message.role} is omitted.`);
    return null;
  }
  const own = visible === message ? visible : replaceMessage(message, visible);
  return own.role === "user" ? readUser(own, tell) : readBlocks(own, tell);
}

function readUser(message: Extract<TranscriptMessage, { role: "user" }>, tell: Tell): TranscriptMessage {
  if (typeof message.content !== "string") return readBlocks(message, tell);
  const text = toWellFormed(message.content);
  if (text.trim() === "") {
    tell("blank_text", "Blank text is omitted.");
    return derive(message, { content: [] });
  }
  if (text === message.content) return message;
  tell("half_character", "Lone surrogates are replaced.");
  return derive(message, { content: text });
}

function readBlocks<M extends TranscriptMessage>(message: M, tell: Tell): M {
  const blocks = anyBlocksOf(message.content);
  let changed = blocks !== message.content;
  const kept: Block[] = [];
  for (const block of blocks) {
    const after = readBlock(block, message.role, tell);
    if (after !== block) changed = true;
    if (after !== null) kept.push(after);
  }
  if (message.role === "toolResult" && kept.length === 0) {
    changed = true;
    kept.push({ type: "text", text: noOutput });
    tell("no_output", "The result is empty and is sent as (no output).");
  }
  return changed ? derive(message, { content: kept } as Partial<M>) : message;
}

/** Files from other programs can contain a string, or nothing, instead of blocks. */
function anyBlocksOf(content: unknown): readonly Block[] {
  if (Array.isArray(content)) return content;
  return typeof content === "string" ? [{ type: "text", text: content }] : [];
}

function readBlock(block: Block, role: TranscriptMessage["role"], tell: Tell): Block | null {
  switch (block?.type) {
    case "text":
      return readText(block, role, tell);
    case "image":
      if (role === "assistant") break;
      return typeof block.data === "string" ? block : dropBlock(block.type, tell);
    case "thinking":
      if (role !== "assistant") break;
      return typeof block.thinking === "string"
        ? repairText(block, "thinking", tell)
        : dropBlock(block.type, tell);
    case "toolCall": {
      if (role !== "assistant") break;
      const args = toWellFormedJson(block.arguments);
      if (args === block.arguments) return block;
      tell("half_character", "Lone surrogates are replaced.");
      return { ...block, arguments: args as typeof block.arguments };
    }
  }
  return dropBlock(String((block as { type?: unknown } | null)?.type), tell);
}

function readText(block: TextBlock, role: TranscriptMessage["role"], tell: Tell): TextBlock | null {
  if (typeof block.text !== "string") return dropBlock(block.type, tell);
  const isImage = role !== "assistant" && isImageBlob(block);
  if (block.text.trim() !== "" || isImage) return repairText(block, "text", tell);
  tell("blank_text", "Blank text is omitted.");
  return null;
}

function dropBlock(type: string, tell: Tell): null {
  tell("unknown_block", `A block of type ${type} is omitted.`);
  return null;
}

function repairText<B extends Block, F extends string & keyof B>(block: B, field: F, tell: Tell): B {
  const text = block[field] as string;
  const after = toWellFormed(text);
  if (after === text) return block;
  tell("half_character", "Lone surrogates are replaced.");
  return { ...block, [field]: after };
}

/** Replaces lone surrogates, which servers reject. Returns the same string if there are none. */
export function toWellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Servers accept JSON nested to a depth of about a hundred. */
export const maxJsonDepth = 100;

/**
 * Repairs all strings and keys in a JSON value. Returns the same value if they are well formed, or if it is nested too
 * deeply to be sent.
 */
export function toWellFormedJson(value: unknown): unknown {
  return isWellFormedJson(value, 0) || isTooDeep(value) ? value : repairJson(value);
}

/** Whether a JSON value is nested deeper than `maxJsonDepth`. The recursion stops there. */
export function isTooDeep(value: unknown, level = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (level > maxJsonDepth) return true;
  for (const key in value) if (isTooDeep((value as Record<string, unknown>)[key], level + 1)) return true;
  return false;
}

function isWellFormedJson(value: unknown, level: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  if (level > maxJsonDepth) return false;
  for (const key in value) {
    if (!key.isWellFormed() || !isWellFormedJson((value as Record<string, unknown>)[key], level + 1))
      return false;
  }
  return true;
}

function repairJson(value: unknown): unknown {
  if (typeof value === "string") return toWellFormed(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(repairJson);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [toWellFormed(key), repairJson(inner)]),
  );
}
