import type { ToolResultMessage } from "../../core/messages.ts";
import { cutText, endOfText } from "../../core/text.ts";
import type { ContextMessage, StepResult, TranscriptMessage } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, mapMessages, removeField } from "../derive.ts";

const maxWindowShare = 0.3;
const charactersPerToken = 4;

/**
 * Returns the maximum number of characters in one result. If the window is unknown, this is the maximum that a session
 * accepts.
 */
export function toolResultLimit(contextWindow?: number): number {
  if (contextWindow === undefined || Number.isNaN(contextWindow)) return maxResultCharacters;
  const share = Math.floor(contextWindow * maxWindowShare * charactersPerToken);
  return Math.max(1, Math.min(maxResultCharacters, share));
}

/** Truncates each result that is too long for the window, keeping its head and tail. The session keeps the full result. */
export function truncateToolResults(
  messages: readonly TranscriptMessage[],
  { contextWindow, record }: Pick<StepOptions, "contextWindow" | "record">,
): StepResult {
  const limit = toolResultLimit(contextWindow);
  return mapMessages(messages, record, (message, tell) => {
    const content = message.role === "toolResult" ? truncateContent(message, limit) : null;
    if (content === null || message.role !== "toolResult") return message;
    const name = message.toolName ?? "a tool";
    const note = `The result from ${name} had ${resultLength(message)} characters and was truncated to ${limit}.`;
    tell("result_truncated", note);
    return derive(message, { content });
  });
}

/** Whether truncating results could avoid a compaction. */
export function sessionLikelyHasOversizedToolResults(
  messages: readonly ContextMessage[],
  contextWindow?: number,
): boolean {
  const limit = toolResultLimit(contextWindow);
  return messages.some((message) => message.role === "toolResult" && resultLength(message) > limit);
}

type Content = ToolResultMessage["content"];

/** Truncates all text blocks in a result in proportion to their length. Returns `null` if the result fits. */
export function truncateContent(message: ToolResultMessage, limit: number): Content | null {
  const total = resultLength(message);
  if (total <= limit) return null;
  const texts = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const capped = capTexts(texts, () => `\n[… cut from ${total} characters to fit the context …]\n`, limit);
  let place = 0;
  const blocks = message.content.flatMap((block): Content => {
    if (block.type !== "text") return [block];
    const text = capped[place++] ?? "";
    // Providers reject empty text blocks. A block that was already empty stays empty.
    if (text === block.text) return [block];
    return text.trim() === "" ? [] : [{ ...block, text }];
  });
  if (blocks.some((block) => block.type === "text" && block.text.trim() !== "")) return blocks;
  // No text block received any space, so the start of the first one is kept.
  const [first = ""] = texts.map((text) => text.trim()).filter((text) => text !== "");
  const text = cutText(first, limit) || "…";
  return [{ type: "text", text }, ...blocks.filter((block) => block.type !== "text")];
}

function resultLength({ content }: ToolResultMessage): number {
  return content.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);
}

/** The maximum number of characters in a tool result, across all its text blocks. */
export const maxResultCharacters = 400_000;
const minBlockCharacters = 2000;

/**
 * Truncates texts to at most `most` characters in total. Each text keeps a share in proportion to its length, but at
 * least 2,000 characters. The share consists of a head and a tail with a note between them. If there is no room for the
 * note, only the head is kept. Returns the same array if the texts fit.
 */
export function capTexts(
  texts: readonly string[],
  noteOf: (index: number) => string,
  most = maxResultCharacters,
): readonly string[] {
  const total = texts.reduce((sum, text) => sum + text.length, 0);
  if (total <= most) return texts;
  const shares = allocateCharacters(
    texts.map((text) => text.length),
    most,
  );
  return texts.map((text, index) => capText(text, noteOf(index), shares[index] ?? minBlockCharacters));
}

/**
 * Returns the number of characters that each text can keep. Short texts are kept whole. The others share the rest in
 * proportion to their length.
 */
function allocateCharacters(lengths: readonly number[], most: number): number[] {
  const least = Math.min(minBlockCharacters, Math.floor(most / lengths.length));
  const small = lengths.map((length) => length <= least);
  const left =
    most - lengths.reduce((sum, length, index) => sum + (small[index] === true ? length : least), 0);
  const large = lengths.reduce((sum, length, index) => sum + (small[index] === true ? 0 : length - least), 0);
  return lengths.map((length, index) =>
    small[index] === true ? length : least + Math.floor((left * (length - least)) / Math.max(1, large)),
  );
}

function capText(text: string, note: string, longest: number): string {
  if (text.length <= longest) return text;
  const room = longest - note.length;
  if (room < 2) return cutText(text, longest);
  const head = cutText(text, Math.ceil(room * 0.7));
  return `${head}${note}${endOfText(text, room - head.length)}`;
}

/** Step 6: removes `details` from tool results. They are meant for programs and are never sent to a model. */
export function stripToolResultDetails(
  messages: readonly TranscriptMessage[],
  { record }: Pick<StepOptions, "record">,
): StepResult {
  return mapMessages(messages, record, (message, tell) => {
    if (message.role !== "toolResult" || message.details === undefined) return message;
    tell("details_removed", "A result's details are for programs only.");
    return removeField(message, "details");
  });
}
