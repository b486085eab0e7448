/** Deeper than anybody means it. V8 takes a second to parse two megabytes of nothing but brackets. */
export const deepestJson = 1000;

const [quote, backslash, list, listEnd, object, objectEnd] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** How deep a JSON text is nested, looked at before it is parsed, in any pieces. What is no JSON has some depth too. */
export class Nesting {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  /** `false`: it is nested deeper than is taken, and need not be looked at further. */
  take(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        if (byte === quote) this.#isInText = false;
        else if (byte === backslash) this.#isEscaped = true;
      } else if (byte === quote) this.#isInText = true;
      else if (byte === list || byte === object) {
        this.#depth += 1;
        if (this.#depth > deepestJson) return false;
      } else if (byte === listEnd || byte === objectEnd) this.#depth -= 1;
    }
    return true;
  }
}
