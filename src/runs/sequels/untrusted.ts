import { cutText, escapeToLine, escapeUnprintable } from "../../core/text.ts";

/** Words of somebody else inside a text of ours: they cannot end where we do not end them. */

/** A model is told so much of a result at the most; the whole stands in the session that said it. */
export const mostCharacters = 100_000;
const shortestFence = 3;
const longestFence = 64;
export const noOutput = "(no output)";

/**
 * A text between fences that are longer than any run of their character in it, with control characters made visible and
 * the end cut off where it is very long.
 */
export function fenced(text: string, most: number = mostCharacters): string {
  const shown = escapeUnprintable(cutText(text.trim(), most).replaceAll("\r\n", "\n"));
  const fits = (["`", "~"] as const).map((char) => ({ char, run: longestRun(shown, char) }));
  const { char, run } = fits.reduce((best, each) => (each.run < best.run ? each : best));
  const fence = char.repeat(Math.min(longestFence, Math.max(shortestFence, run + 1)));
  const inside = run >= longestFence ? brokenRuns(shown, char) : shown;
  return [fence, inside === "" ? noOutput : inside, fence].join("\n");
}

/** A text as a part of a line. */
export function inLine(text: string, most: number): string {
  const line = escapeToLine(cutText(text, most + 1).trim());
  return line.length > most ? `${cutText(line, most)}…` : line;
}

function longestRun(text: string, char: string): number {
  let longest = 0;
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    run = text[at] === char ? run + 1 : 0;
    if (run > longest) longest = run;
  }
  return longest;
}

/** A run that no fence should have to be longer than, in pieces. */
function brokenRuns(text: string, char: string): string {
  return text.replaceAll(char.repeat(longestFence - 1), `${char.repeat(longestFence - 1)} `);
}
