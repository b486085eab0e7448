import { escapeToLine } from "./text.ts";

/** A shorter text is too common for "contains" to mean that one text was copied from the other. */
const minQuoteLength = 24;
/** Names are short, and are made from the beginning of a text. */
const minNameLength = 8;

/** The texts of redacted entries, to recognize the strings elsewhere that repeat them. */
export class RemovedTexts {
  readonly #texts: readonly string[];

  constructor(texts: Iterable<string>) {
    this.#texts = [...new Set([...texts].map((text) => text.trim()))].filter((text) => text !== "");
  }

  /** The texts that are long enough to be found inside others. */
  get quotable(): readonly string[] {
    return this.#texts.filter((text) => text.length >= minQuoteLength);
  }

  /** Whether a string is one of the texts, contains one, or is a part of one. */
  isRepeatedBy(value: string): boolean {
    return overlap(this.#texts, value.trim(), minQuoteLength);
  }

  /** Whether a name was made from one of the texts. */
  isNamedBy(name: string): boolean {
    return overlap([...this.#texts, ...this.#texts.map(escapeToLine)], name.trim(), minNameLength);
  }
}

function overlap(texts: readonly string[], value: string, minLength: number): boolean {
  return texts.some((text) => {
    if (text === value) return true;
    if (Math.min(text.length, value.length) < minLength) return false;
    return value.includes(text) || text.includes(value);
  });
}
