import type { ToolResultMessage } from "../../core/messages.ts";
import { cutText } from "../../core/text.ts";
import { capTexts, mostResultCharacters } from "../cap-texts.ts";
import type { Change, ContextMessage, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive } from "../derive.ts";

const mostShare = 0.3;
const charactersPerToken = 4;

/** How many characters of text one result may hold; of an unknown window, as many as a session lets in. */
export function toolResultLimit(contextWindow?: number): number {
  if (contextWindow === undefined || Number.isNaN(contextWindow)) return mostResultCharacters;
  const share = Math.floor(contextWindow * mostShare * charactersPerToken);
  return Math.max(1, Math.min(mostResultCharacters, share));
}

/** Cuts each result that is too long for the window, head and tail kept. In memory: the session has the whole. */
export function truncateToolResults(
  messages: readonly TranscriptMessage[],
  { contextWindow, record }: { readonly contextWindow?: number | undefined; readonly record: Recorder },
): StepResult {
  const limit = toolResultLimit(contextWindow);
  const changes: Change[] = [];
  const cut = messages.map((message) => {
    const content = message.role === "toolResult" ? truncatedContent(message, limit) : null;
    if (content === null || message.role !== "toolResult") return message;
    const note = `The result of ${message.toolName ?? "a tool"} had ${resultLength(message)} characters and was cut to ${limit}.`;
    changes.push(record("result_truncated", note, message));
    return derive(message, { content });
  });
  return { messages: changes.length === 0 ? messages : cut, changes };
}

/** Whether cutting results is worth a try before anything is summarised. */
export function sessionLikelyHasOversizedToolResults(
  messages: readonly ContextMessage[],
  contextWindow?: number,
): boolean {
  const limit = toolResultLimit(contextWindow);
  return messages.some((message) => message.role === "toolResult" && resultLength(message) > limit);
}

type Content = ToolResultMessage["content"];

/** What a result holds once it is cut, over all its texts in proportion; `null`: it fits. */
export function truncatedContent(message: ToolResultMessage, limit: number): Content | null {
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
