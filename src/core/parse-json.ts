import type { Steps } from "./slices.ts";
import { sliceBytes } from "./slices.ts";

/** So much text is read between two looks at the clock. */
const stepCharacters = 16 * 1024;
/** A longer string is unescaped in pieces. */
const pieceCharacters = 64 * 1024;
/** The longest escape is a backslash, `u` and four digits. */
const longestEscape = 6;

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const blankPattern = /[ \t\n\r]*/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON allows none of them in a string.
const needsParser = /[\\\u0000-\u001f]/;
const literals: readonly (readonly [string, boolean | null])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

/** Whether a text is long enough to be parsed in slices. */
export function isLongJson(text: string): boolean {
  return text.length > sliceBytes;
}

/** What JSON.parse gives and throws, but in steps: a text of many megabytes does not keep the event loop busy. */
export function* parseJsonInSteps(text: string): Steps<unknown> {
  const reader = new JsonReader(text);
  for (let reported = 0; ; ) {
    const isDone = reader.readToken();
    if (reader.at - reported >= stepCharacters) {
      yield reader.at - reported;
      reported = reader.at;
    }
    if (isDone) return reader.value;
  }
}

function unescaped(inside: string): string {
  return needsParser.test(inside) ? (JSON.parse(`"${inside}"`) as string) : inside;
}

/** A list or object that is not complete yet. */
interface Open {
  readonly list: unknown[] | null;
  readonly object: Record<string, unknown>;
  /** Of the value that comes next; `null`: it has not come yet. */
  key: string | null;
  /** What may come next. */
  next: "first" | "value" | "separator";
}

class JsonReader {
  readonly #text: string;
  readonly #open: Open[] = [];
  /** A long string of which only the beginning is read. */
  #long: { readonly end: number; readonly parts: string[] } | null = null;
  at = 0;
  value: unknown;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads a value, a key, a separator, an end or a piece of a long string; `true`: the text is complete. */
  readToken(): boolean {
    if (this.#long !== null) return this.#readPiece(this.#long);
    this.#skipBlanks();
    const top = this.#open.at(-1);
    if (top === undefined) return this.#readValue();
    const found = this.#text[this.at];
    const isKey = top.list === null && top.key === null;
    if (top.next !== "value" && found === (top.list === null ? "}" : "]")) {
      this.at += 1;
      this.#open.pop();
      return this.#complete(top.list ?? top.object);
    }
    if (top.next === "separator") {
      this.#expect(",");
      top.next = "value";
      return false;
    }
    if (isKey) {
      if (found !== '"') throw this.#unexpected();
      return this.#readString();
    }
    if (top.list === null) {
      this.#expect(":");
      this.#skipBlanks();
    }
    return this.#readValue();
  }

  #readValue(): boolean {
    const found = this.#text[this.at];
    if (found === '"') return this.#readString();
    if (found === "[" || found === "{") {
      this.at += 1;
      this.#open.push({ list: found === "[" ? [] : null, object: {}, key: null, next: "first" });
      return false;
    }
    const literal = literals.find(([word]) => word[0] === found && this.#text.startsWith(word, this.at));
    if (literal !== undefined) {
      this.at += literal[0].length;
      return this.#complete(literal[1]);
    }
    numberPattern.lastIndex = this.at;
    const number = numberPattern.exec(this.#text)?.[0];
    if (number === undefined) throw this.#unexpected();
    this.at += number.length;
    return this.#complete(Number(number));
  }

  /** Puts a value where it belongs; `true`: it is the whole. */
  #complete(value: unknown): boolean {
    const top = this.#open.at(-1);
    if (top === undefined) {
      this.value = value;
      this.#skipBlanks();
      if (this.at < this.#text.length) throw this.#unexpected();
      return true;
    }
    top.next = "separator";
    if (top.list !== null) {
      top.list.push(value);
      return false;
    }
    const { object, key } = top;
    top.key = null;
    // To assign it would change the object's prototype.
    if (key === "__proto__")
      Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
    else object[key ?? ""] = value;
    return false;
  }

  /** A string is a key where an object has none for its next value yet. */
  #gotString(value: string): boolean {
    const top = this.#open.at(-1);
    if (top === undefined || top.list !== null || top.key !== null) return this.#complete(value);
    top.key = value;
    top.next = "value";
    return false;
  }

  #readString(): boolean {
    const from = this.at + 1;
    const end = this.#endOfString(from);
    if (end - from > pieceCharacters) {
      this.at = from;
      this.#long = { end, parts: [] };
      return false;
    }
    this.at = end + 1;
    return this.#gotString(unescaped(this.#text.slice(from, end)));
  }

  #readPiece({ end, parts }: { readonly end: number; readonly parts: string[] }): boolean {
    const stop = this.#wholeEscapes(this.at, Math.min(end, this.at + pieceCharacters));
    parts.push(unescaped(this.#text.slice(this.at, stop)));
    this.at = stop;
    if (stop < end) return false;
    this.#long = null;
    this.at += 1;
    return this.#gotString(parts.join(""));
  }

  #endOfString(from: number): number {
    for (let at = from; ; at += 1) {
      at = this.#text.indexOf('"', at);
      if (at === -1) throw new SyntaxError("Unterminated string in JSON");
      if (this.#backslashesBefore(at, from) % 2 === 0) return at;
    }
  }

  #backslashesBefore(at: number, from: number): number {
    let count = 0;
    while (at - count > from && this.#text[at - count - 1] === "\\") count += 1;
    return count;
  }

  /** Where to stop so that no escape is cut in two. */
  #wholeEscapes(start: number, stop: number): number {
    for (let at = stop - 1; at > start && at >= stop - longestEscape; at--) {
      if (this.#text[at] !== "\\") continue;
      if (this.#backslashesBefore(at, start) % 2 === 1) return stop;
      const length = this.#text[at + 1] === "u" ? longestEscape : 2;
      return at + length > stop ? at : stop;
    }
    return stop;
  }

  #skipBlanks(): void {
    if (this.#text.charCodeAt(this.at) > 0x20) return;
    blankPattern.lastIndex = this.at;
    this.at += blankPattern.exec(this.#text)?.[0].length ?? 0;
  }

  #expect(character: string): void {
    if (this.#text[this.at] !== character) throw this.#unexpected();
    this.at += 1;
  }

  #unexpected(): SyntaxError {
    const found = this.#text[this.at];
    return new SyntaxError(
      found === undefined ? "Unexpected end of JSON" : `Unexpected token in JSON at position ${this.at}`,
    );
  }
}
