import { cutText, endOfText } from "../../core/text.ts";
import { textTokens } from "../text-tokens.ts";

/** Texts made shorter: the head and the tail stay, and a note between them says how much is gone. */

const headShare = 0.7;
const shrinkBy = 0.8;

/** At most about so many characters, the note beside; the same string if it fits. */
export function truncateText(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const head = cutText(text, Math.ceil(longest * headShare));
  const tail = endOfText(text, Math.max(0, longest - head.length));
  // The tail goes on in the note's line, so that no line begins in it that did not begin in the text.
  return `${head}\n[… ${text.length - head.length - tail.length} characters left out …] ${tail}`;
}

/** At most so many tokens; nothing where not even the note fits. */
export function truncateToTokens(text: string, most: number): string {
  const size = textTokens(text);
  if (size <= most) return text;
  let length = Math.floor((text.length * Math.max(0, most)) / size);
  for (; length > 0; length = Math.floor(length * shrinkBy)) {
    const short = truncateText(text, length);
    if (textTokens(short) <= most) return short;
  }
  return "";
}
