import { cutText, endOfText } from "../../core/text.ts";
import { textTokens } from "../text-tokens.ts";
import { compactionLimits } from "./limits.ts";

/** A range that is too large for one request, in pieces. */

export type CompactionMode = "default" | "safeguard";

/** In safeguard mode, the share of the window that a request to the summarizer may fill. */
const defaultHistoryShare = 0.5;
export const minHistoryShare = 0.1;
export const maxHistoryShareLimit = 0.9;
/** Instructions, headings and names of files. */
const overheadTokens = 1200;
/** However small the window, a piece has some text. */
const minChunkTokens = 64;
const minChunkShare = 0.125;

/** How many tokens of conversation go into one request, the notes so far and our instructions beside them. */
export function chunkTokens(
  contextWindow: number,
  mode: CompactionMode,
  maxHistoryShare = defaultHistoryShare,
): number {
  const { threshold, summaryTokens } = compactionLimits(contextWindow);
  const share = Math.min(maxHistoryShareLimit, Math.max(minHistoryShare, maxHistoryShare));
  const input = mode === "safeguard" ? Math.min(threshold, contextWindow * share) : threshold;
  // The notes so far seldom take all that is set aside for them: with a small share, half of what is left is conversation.
  const half = (input - overheadTokens) / 2;
  const least = Math.max(minChunkTokens, Math.floor(Math.min(contextWindow * minChunkShare, half)));
  return Math.max(least, Math.floor(input - summaryTokens - overheadTokens));
}

/** The texts in pieces of at most so many tokens, in order; a text larger than a piece keeps its head and tail. */
export function* splitChunks(texts: Iterable<string>, most: number): Generator<readonly string[]> {
  let held: string[] = [];
  let tokens = 0;
  for (const text of texts) {
    const { fitting, size } = fitText(text, most);
    if (held.length > 0 && tokens + size > most) {
      yield held;
      held = [];
      tokens = 0;
    }
    held.push(fitting);
    tokens += size;
  }
  if (held.length > 0) yield held;
}

/** The same from pages that come newest first: pieces newest first, the texts of each oldest first. */
export async function* splitChunksBackwards(
  pages: AsyncIterable<readonly string[]>,
  most: number,
): AsyncGenerator<readonly string[]> {
  let held: string[] = [];
  let tokens = 0;
  for await (const page of pages) {
    for (const text of page.toReversed()) {
      const { fitting, size } = fitText(text, most);
      if (held.length > 0 && tokens + size > most) {
        yield held.toReversed();
        held = [];
        tokens = 0;
      }
      held.push(fitting);
      tokens += size;
    }
  }
  if (held.length > 0) yield held.toReversed();
}

function fitText(text: string, most: number): { fitting: string; size: number } {
  // What joins it to the next one counts too.
  const fitting = truncateToTokens(text, most - 1);
  return { fitting, size: textTokens(fitting) + 1 };
}

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
