import type { Steps } from "../../../core/slices.ts";
import { deepestNesting } from "../../../protocol/nesting.ts";

/** What a parser would make of a line of JSON. Millions of small values take it seconds, and everybody else waits meanwhile. */

/** Of one message: what is large is so by its texts. */
export const mostValues = 250_000;

/** A shorter line is parsed in no time, whatever it holds. */
const shortBytes = 64 * 1024;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Why a message is not parsed, or `null`. Texts, which are most of a large message, are searched natively for their end. */
export function* tooHeavy(line: Buffer): Steps<string | null> {
  if (line.length <= shortBytes) return null;
  let [depth, values, reported, isText] = [0, 0, 0, false];
  for (let at = 0; at < line.length; at++) {
    if (at - reported >= shortBytes) {
      yield at - reported;
      reported = at;
    }
    if (isText) {
      at = line.indexOf(quote, at);
      if (at === -1) return null;
      isText = isEscaped(line, at);
      continue;
    }
    const byte = line[at];
    if (byte === quote) isText = true;
    else if (byte === comma) values++;
    else if (byte === openList || byte === openObject) {
      depth++;
      values++;
    } else if (byte === closeList || byte === closeObject) depth--;
    if (depth > deepestNesting) return `of more than ${deepestNesting} levels`;
    if (values > mostValues) return `of more than ${mostValues} values`;
  }
  return null;
}

function isEscaped(line: Buffer, at: number): boolean {
  let before = at;
  while (line[before - 1] === backslash) before--;
  return (at - before) % 2 === 1;
}
