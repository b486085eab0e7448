import { cutText, escapeToLine, escapeUnprintable, fenceText } from "../../core/text.ts";

/** Words of somebody else inside a text of ours: they cannot end where we do not end them. */

/** A model is told so much of a result at the most; the whole stands in the session that said it. */
export const mostCharacters = 100_000;
/** Of each text that the announcement of an exchange quotes. */
export const longestQuote = 4000;

export const noOutput = "(no output)";

/**
 * A text between fences that are longer than any run of their character in it, with control characters made visible and
 * the end cut off where it is very long.
 */
export function fenced(text: string, most: number = mostCharacters): string {
  const shown = escapeUnprintable(cutText(text.trim(), most).replaceAll("\r\n", "\n"));
  return fenceText(shown === "" ? noOutput : shown);
}

/** A text as a part of a line. */
export function inLine(text: string, most: number): string {
  const line = escapeToLine(cutText(text, most + 1).trim());
  return line.length > most ? `${cutText(line, most)}…` : line;
}
