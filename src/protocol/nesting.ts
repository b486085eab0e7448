/** Limits the nesting of JSON. Parsing a million levels takes a second, which blocks every other request. */

import type { Steps } from "../core/slices.ts";

/** Deeper than any legitimate request. */
export const deepestNesting = 1000;

/** A shorter text is parsed quickly at any depth. */
const shortBytes = 64 * 1024;

const [quote, backslash, openList, closeList, openObject, closeObject] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** Measures a text while its bytes arrive, in pieces that may end anywhere. */
export class NestingMeter {
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  /** Whether it is too deep, up to the end of this piece. */
  take(bytes: Uint8Array): boolean {
    for (let index = 0; index < bytes.length; index += 1) {
      const byte = bytes[index] as number;
      if (this.#isText) this.#inText(byte);
      else if (byte === quote) this.#isText = true;
      else if (byte === openList || byte === openObject) this.#depth += 1;
      else if (byte === closeList || byte === closeObject) this.#depth -= 1;
      if (this.#depth > deepestNesting) return true;
    }
    return false;
  }

  #inText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === backslash) this.#isEscaped = true;
    else if (byte === quote) this.#isText = false;
  }
}

/** Whether it would take too long to parse. */
export function* isTooDeep(bytes: Uint8Array): Steps<boolean> {
  if (bytes.length <= shortBytes) return false;
  const meter = new NestingMeter();
  for (let from = 0; from < bytes.length; from += shortBytes) {
    if (meter.take(bytes.subarray(from, from + shortBytes))) return true;
    yield shortBytes;
  }
  return false;
}
