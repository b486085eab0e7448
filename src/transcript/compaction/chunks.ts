import { cutText, endOfText } from "../../core/text.ts";
import { textTokens } from "../text-tokens.ts";
import { compactionLimits } from "./limits.ts";

export type CompactionMode = "default" | "safeguard";

/** In safeguard mode, the share of the window that a request to the summarizer can fill. */
const defaultHistoryShare = 0.5;
export const minHistoryShare = 0.1;
export const maxHistoryShareLimit = 0.9;
/** Reserved for instructions, headings and file names. */
const overheadTokens = 1200;
/** A chunk always has room for some text, no matter how small the window is. */
const minChunkTokens = 64;
const minChunkShare = 0.125;

/** Returns how many tokens of conversation fit in a request, in addition to the notes so far and the instructions. */
export function chunkTokens(
  contextWindow: number,
  mode: CompactionMode,
  maxHistoryShare = defaultHistoryShare,
): number {
  const { threshold, summaryTokens } = compactionLimits(contextWindow);
  const share = Math.min(maxHistoryShareLimit, Math.max(minHistoryShare, maxHistoryShare));
  const input = mode === "safeguard" ? Math.min(threshold, contextWindow * share) : threshold;
  // The notes rarely use their whole share, so even a small window reserves half of the rest for the conversation.
  const half = (input - overheadTokens) / 2;
  const least = Math.max(minChunkTokens, Math.floor(Math.min(contextWindow * minChunkShare, half)));
  return Math.max(least, Math.floor(input - summaryTokens - overheadTokens));
}

/** Splits texts into chunks of at most `most` tokens. If a text is larger, only its head and tail are kept. */
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

/**
 * Splits pages that arrive newest first. Chunks are also yielded newest first, but the texts within each chunk are
 * oldest first.
 */
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
  // Leaves one token for the separator before the next text.
  const fitting = truncateToTokens(text, most - 1);
  return { fitting, size: textTokens(fitting) + 1 };
}

const headShare = 0.7;
const shrinkBy = 0.8;

/**
 * Keeps about `longest` characters and adds a note in the middle with the number of omitted characters. Returns the
 * same string if it fits.
 */
export function truncateText(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const head = cutText(text, Math.ceil(longest * headShare));
  const tail = endOfText(text, Math.max(0, longest - head.length));
  // The tail continues on the same line as the note, so truncation never moves text to the start of a line.
  return `${head}\n[… ${text.length - head.length - tail.length} characters left out …] ${tail}`;
}

/** Truncates to at most `most` tokens. Returns an empty string if not even the note fits. */
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
