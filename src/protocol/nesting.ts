/** Limits how deeply JSON can be nested. Parsing a million levels takes a second and blocks every other request. */

import type { Steps } from "../core/slices.ts";

/** Deeper than any legitimate request. */
export const deepestNesting = 1000;

/** Shorter text is fast to parse at any depth. */
const shortBytes = 64 * 1024;

const [quote, backslash, openList, closeList, openObject, closeObject] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** Measures the nesting depth as bytes arrive, in chunks that can end anywhere. */
export class NestingMeter {
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  /** Returns whether the text up to the end of this chunk is nested too deeply. */
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

/** Whether text is nested so deeply that parsing would take too long. */
export function* isTooDeep(bytes: Uint8Array): Steps<boolean> {
  if (bytes.length <= shortBytes) return false;
  const meter = new NestingMeter();
  for (let from = 0; from < bytes.length; from += shortBytes) {
    if (meter.take(bytes.subarray(from, from + shortBytes))) return true;
    yield shortBytes;
  }
  return false;
}
