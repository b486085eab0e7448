import type { ToolResultMessage } from "../../core/messages.ts";
import { cutText, endOfText } from "../../core/text.ts";
import type { Change, ContextMessage, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive, removeField } from "../derive.ts";

const maxWindowShare = 0.3;
const charactersPerToken = 4;

/** How many characters of text one result may hold; of an unknown window, as many as a session lets in. */
export function toolResultLimit(contextWindow?: number): number {
  if (contextWindow === undefined || Number.isNaN(contextWindow)) return maxResultCharacters;
  const share = Math.floor(contextWindow * maxWindowShare * charactersPerToken);
  return Math.max(1, Math.min(maxResultCharacters, share));
}

/** Cuts each result that is too long for the window, head and tail kept. In memory: the session has the whole. */
export function truncateToolResults(
  messages: readonly TranscriptMessage[],
  { contextWindow, record }: { readonly contextWindow?: number | undefined; readonly record: Recorder },
): StepResult {
  const limit = toolResultLimit(contextWindow);
  const changes: Change[] = [];
  const cut = messages.map((message) => {
    const content = message.role === "toolResult" ? truncateContent(message, limit) : null;
    if (content === null || message.role !== "toolResult") return message;
    const note = `The result of ${message.toolName ?? "a tool"} had ${resultLength(message)} characters and was cut to ${limit}.`;
    changes.push(record("result_truncated", note, message));
    return derive(message, { content });
  });
  return { messages: changes.length === 0 ? messages : cut, changes };
}

/** Whether cutting results is worth a try before anything is summarized. */
export function sessionLikelyHasOversizedToolResults(
  messages: readonly ContextMessage[],
  contextWindow?: number,
): boolean {
  const limit = toolResultLimit(contextWindow);
  return messages.some((message) => message.role === "toolResult" && resultLength(message) > limit);
}

type Content = ToolResultMessage["content"];

/** What a result holds once it is cut, over all its texts in proportion; `null`: it fits. */
export function truncateContent(message: ToolResultMessage, limit: number): Content | null {
  const total = resultLength(message);
  if (total <= limit) return null;
  const texts = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const capped = capTexts(texts, () => `\n[… cut from ${total} characters to fit the context …]\n`, limit);
  let place = 0;
  const blocks = message.content.flatMap((block): Content => {
    if (block.type !== "text") return [block];
    const text = capped[place++] ?? "";
    // No provider takes an empty text; one that was empty before is not ours to judge.
    if (text === block.text) return [block];
    return text.trim() === "" ? [] : [{ ...block, text }];
  });
  if (blocks.some((block) => block.type === "text" && block.text.trim() !== "")) return blocks;
  // So little room that no text has any: the beginning of the first.
  const [first = ""] = texts.map((text) => text.trim()).filter((text) => text !== "");
  const text = cutText(first, limit) || "…";
  return [{ type: "text", text }, ...blocks.filter((block) => block.type !== "text")];
}

function resultLength({ content }: ToolResultMessage): number {
  return content.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);
}

/** A tool result may hold so many characters, over all its text blocks. */
export const maxResultCharacters = 400_000;
/** What each block keeps at least. */
const minBlockCharacters = 2000;

/**
 * Cuts texts so that together they hold at most `most` characters: each in proportion to its length, but at least
 * 2,000, its head and its tail kept and a note between them; where not even the note has room, the head alone. The same
 * array when they fit.
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

/** Short texts keep all of theirs; the others share what is left in proportion. */
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

/** Step 6: `details` of a tool's result is for programs, and may hold anything; it never reaches a model. */
export function stripToolResultDetails(
  messages: readonly TranscriptMessage[],
  { record }: { readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  const after = messages.map((message) => {
    if (message.role !== "toolResult" || message.details === undefined) return message;
    changes.push(record("details_removed", "Details of a result are for programs only.", message));
    return removeField(message, "details");
  });
  return { messages: changes.length > 0 ? after : messages, changes };
}
