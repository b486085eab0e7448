import type { ToolResultMessage } from "../../core/messages.ts";
import { textOf } from "../../core/messages.ts";
import { cutText, endOfText } from "../../core/text.ts";

/** What becomes of one tool result that is pruned. */

const trimmedFrom = 4000;
const headKept = 1500;
const tailKept = 1500;
export const clearedText = "[Old tool result content cleared]";

type Content = ToolResultMessage["content"];

/** How many characters of text a result holds. */
export function prunableLength({ content }: ToolResultMessage): number {
  return textOf(content).length;
}

/** Its text's head and tail; images become a text. `null`: it is short enough. */
export function trimmedContent({ content }: ToolResultMessage): Content | null {
  const text = textOf(content);
  if (text.length <= trimmedFrom) return null;
  const gone = text.length - headKept - tailKept;
  const trimmed = `${cutText(text, headKept)}${noteOf(gone)}${endOfText(text, tailKept)}`;
  const images = content.filter((block) => block.type === "image").length;
  const seen = images === 0 ? [] : [{ type: "text" as const, text: imagesText(images) }];
  return [{ type: "text", text: trimmed }, ...seen];
}

/** `null`: there is nothing to be had. */
export function clearedContent({ content }: ToolResultMessage): Content | null {
  const hasOther = content.some((block) => block.type !== "text");
  if (!hasOther && textOf(content).length <= clearedText.length) return null;
  return [{ type: "text", text: clearedText }];
}

/** What pruning has made of a result; `null`: it is whole. */
export function prunedHow(message: ToolResultMessage): "trimmed" | "cleared" | null {
  if (isCleared(message)) return "cleared";
  const [block] = message.content;
  return block?.type === "text" && notePattern.test(block.text.slice(headKept - 1)) ? "trimmed" : null;
}

export function isCleared({ content }: ToolResultMessage): boolean {
  return textOf(content) === clearedText;
}

function noteOf(characters: number): string {
  return `\n[… ${characters} characters of an old tool result left out …]\n`;
}

/** Behind a head of 1,500 characters, or one less where a pair would have been split. */
const notePattern = /^.?\n\[… \d+ characters of an old tool result left out …\]\n/s;

function imagesText(count: number): string {
  return count === 1
    ? "[an image of an old tool result left out]"
    : `[${count} images of an old tool result left out]`;
}
