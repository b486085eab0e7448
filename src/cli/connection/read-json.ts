import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";

/** JSON that a person typed. A mistake in it is told with its place. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const at = placeOfMistake(text);
    const before = text.slice(0, at).split("\n");
    const where = `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}`;
    const char = text.at(at);
    const found =
      at >= text.length || char === undefined ? "it ends too early" : `"${char}" does not belong there`;
    throw new SkeinError("invalid_arguments", {
      problem: `The arguments are no JSON: ${where}: ${found}`,
      advice: `Put one object in single quotes: '{"limit": 5}'`,
    });
  }
}

/** The first character that nothing behind it could make right. */
function placeOfMistake(text: string): number {
  let [fine, wrong] = [0, text.length + 1];
  while (wrong - fine > 1) {
    const middle = Math.floor((fine + wrong) / 2);
    if (isBeginning(text.slice(0, middle))) fine = middle;
    else wrong = middle;
  }
  return fine;
}

/** Whether only the end of it is missing. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const message = thrownText(error);
    const [, position] = /at position (\d+)/.exec(message) ?? [];
    if (position === undefined) return message.startsWith("Unexpected end");
    return Number(position) >= text.length || message.startsWith("Unterminated string");
  }
}
