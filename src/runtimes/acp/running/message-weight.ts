import { deepestNesting } from "../../../protocol/nesting.ts";

/** What a parser would make of a line of JSON. Millions of small values take it seconds, and everybody else waits meanwhile. */

/** Of one message: what is large is so by its texts. */
export const mostValues = 250_000;

/** A shorter line is parsed in no time, whatever it holds. */
const shortBytes = 64 * 1024;

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Why it is not parsed, of a message; `null`: it can be. */
export function tooHeavy(line: Buffer): string | null {
  if (line.length <= shortBytes) return null;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < line.length; at++) {
    const byte = line[at];
    if (byte === quote) at = endOfText(line, at);
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

/** Where the quote is that ends a text; of one without an end, behind the line. Most of a large message is passed over by it. */
function endOfText(line: Buffer, from: number): number {
  for (let end = line.indexOf(quote, from + 1); end !== -1; end = line.indexOf(quote, end + 1)) {
    let before = end;
    while (line[before - 1] === backslash) before--;
    if ((end - before) % 2 === 0) return end;
  }
  return line.length;
}
