import type { Steps } from "./slices.ts";
import { Slices, sliceBytes } from "./slices.ts";

/** The number of characters read between two time checks. */
const stepCharacters = 16 * 1024;
/** Longer strings are unescaped in pieces. */
const pieceCharacters = 64 * 1024;
/** The longest escape sequence: a backslash, `u` and four digits. */
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

/** Whether text is long enough to be parsed in chunks. */
export function isLongJson(text: string): boolean {
  return text.length > sliceBytes;
}

/**
 * Parses short text in one go and long text in chunks. Rejects if `JSON.parse` would throw. `signal` stops the work
 * between two chunks.
 */
export async function parseJson(text: string, signal?: AbortSignal): Promise<unknown> {
  return isLongJson(text) ? new Slices(signal).run(parseJsonInSteps(text)) : JSON.parse(text);
}

/** Like `JSON.parse`, but in steps, so that many megabytes of text do not block the event loop. */
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

/** Returns the index of the first unescaped quote, or -1. */
function endOfString(piece: string): number {
  let at = piece.indexOf('"');
  while (at !== -1 && backslashesBefore(piece, at) % 2 === 1) at = piece.indexOf('"', at + 1);
  return at;
}

function backslashesBefore(piece: string, at: number): number {
  let count = 0;
  while (piece[at - count - 1] === "\\") count += 1;
  return count;
}

/** Returns where to split a piece without splitting an escape sequence. */
function endOfWholeEscapes(piece: string): number {
  const { length } = piece;
  for (let at = length - 1; at >= length - longestEscape; at--) {
    if (piece[at] !== "\\") continue;
    if (backslashesBefore(piece, at) % 2 === 1) return length;
    const escapeLength = piece[at + 1] === "u" ? longestEscape : 2;
    return at + escapeLength > length ? at : length;
  }
  return length;
}

/** An incomplete array or object. */
interface Open {
  readonly list: unknown[] | null;
  readonly object: Record<string, unknown>;
  /** The next value's key, or `null` if it has not been read yet. */
  key: string | null;
  /** The token that can come next. */
  next: "first" | "value" | "separator";
}

class JsonReader {
  readonly #text: string;
  readonly #open: Open[] = [];
  /** The pieces of an unfinished string that have been read, or `null` outside a string. */
  #pieces: string[] | null = null;
  at = 0;
  value: unknown;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Reads a value, a key, a separator, an end or a piece of a long string. Returns `true` when the text is complete.
   */
  readToken(): boolean {
    if (this.#pieces !== null) return this.#readPiece(this.#pieces);
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

  /** Adds a value to its container. Returns `true` if it is the root. */
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
    // Assigning this key would change the object's prototype.
    if (key === "__proto__")
      Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
    else object[key ?? ""] = value;
    return false;
  }

  /** A string is a key if the object is still waiting for its next value's key. */
  #gotString(value: string): boolean {
    const top = this.#open.at(-1);
    if (top === undefined || top.list !== null || top.key !== null) return this.#complete(value);
    top.key = value;
    top.next = "value";
    return false;
  }

  #readString(): boolean {
    this.at += 1;
    return this.#readPiece([]);
  }

  /**
   * Searches one piece of the text for the end of the string so that a long string of escaped quotes takes several
   * steps.
   */
  #readPiece(pieces: string[]): boolean {
    const piece = this.#text.slice(this.at, this.at + pieceCharacters);
    const end = endOfString(piece);
    if (end === -1 && this.at + piece.length === this.#text.length)
      throw new SyntaxError("Unterminated string in JSON");
    const stop = end === -1 ? endOfWholeEscapes(piece) : end;
    pieces.push(unescaped(piece.slice(0, stop)));
    this.at += stop;
    this.#pieces = end === -1 ? pieces : null;
    if (end === -1) return false;
    this.at += 1;
    return this.#gotString(pieces.length === 1 ? (pieces[0] as string) : pieces.join(""));
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
