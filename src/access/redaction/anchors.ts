import { maxTokenStart, mayStartToken } from "./find-token.ts";
import { isBoundary, isInSet, setBitOf } from "./secret-matches.ts";
import type { KeyKind } from "./secret-names.ts";
import { keyKindBefore, maxLookBack } from "./secret-names.ts";
import { tokenRules } from "./token-rules.ts";

const [equals, colon, hyphen, slash] = Array.from("=:-/", (char) => char.charCodeAt(0)) as [
  number,
  number,
  number,
  number,
];
const digit = setBitOf("digit");

/** Text is copied in chunks, because reading a typed array is several times faster than reading a string. */
const chunkLength = 16 * 1024;
/** The number of units after the text that stand for unknown characters. */
const endLength = 2;
const units = new Uint16Array(chunkLength + endLength);
const bytes = Buffer.from(units.buffer);
const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
/** Greater than the distance that any check looks back or ahead. */
const margin = Math.max(maxLookBack, maxTokenStart) + 16;

/** Each ASCII character is its own class. All other characters and the end of a text share the last class. */
const lastClass = 127;
/** A token can start with these two characters if the third one fits and the first one is not inside a word. */
const tokenPair = 1;
/** The same for a prefix without a third character. */
const shortPair = 2;
/** Another rule can start with these two characters. */
const signPair = 4;
const anyPair = tokenPair | shortPair | signPair;

/** By two classes: how a rule can start with them. */
const starts = new Uint8Array(128 * 128);
/** By two classes: whether a prefix has them as its second and third characters. */
const isMiddle = new Uint8Array(128 * 128);

function addStart(first: number, second: number, pair: number): void {
  for (const each of [second, lastClass])
    starts[first * 128 + each] = (starts[first * 128 + each] as number) | pair;
}

for (const prefix of tokenRules.flatMap(({ prefixes }) => prefixes)) {
  const [first = 0, second, third] = Buffer.from(prefix);
  if (second === undefined) for (let any = 0; any < 128; any++) addStart(first, any, shortPair);
  else addStart(first, second, third === undefined ? shortPair : tokenPair);
  if (second !== undefined && third !== undefined) isMiddle[second * 128 + third] = 1;
}
addStart(hyphen, hyphen, signPair);
for (let any = 0; any < 128; any++)
  for (const sign of [equals, colon]) if (any !== sign) addStart(sign, any, signPair);

/**
 * By two classes, in three bits each: how a rule can start with the two characters, how a rule can start after the
 * first character, and how a rule can have started before it.
 */
const pairs = Uint16Array.from(starts, (start, index) => {
  const after = isBoundary(index >> 7) ? anyPair : signPair;
  const isFit = isMiddle[index] === 1 || (index & 127) === lastClass;
  return start | (after << 3) | ((isFit ? anyPair : shortPair | signPair) << 6);
});

/** The indexes in `units` at which a rule might start, in ascending order. */
const hits = new Uint16Array(units.length + 1);

/** Collects the hits without a branch, because the processor would mispredict the branch at every other word. */
function collectHits(length: number): number {
  let count = 0;
  let here = 0;
  let possible = 0;
  let started = 0;
  for (let at = 0; at < length + endLength; at++) {
    const next = Math.min(units[at] as number, lastClass);
    const pair = pairs[(here << 7) | next] as number;
    hits[count] = at - 2;
    count += ((started & (pair >> 6)) + anyPair) >> 3;
    started = pair & possible;
    possible = (pair >> 3) & anyPair;
    here = next;
  }
  return count;
}

/**
 * Finds the few characters at which a rule is worth trying. All finders share `units`, so only one text can be read at
 * a time.
 */
export class AnchorFinder {
  readonly #text: string;
  /** The part of the text that is in `units`. */
  #from = 0;
  #to = 0;
  /** The number of hits in that part. Hits before `#place` have been passed. */
  #count = 0;
  #place = 0;
  /** The kind of the name before the last sign that was found. */
  kind: KeyKind | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Returns the first index at or after `from` at which a rule is worth trying, or the length of the text. Text before
   * `lastEnd`, the end of the last secret, is ignored.
   */
  next(from: number, lastEnd: number): number {
    const { length } = this.#text;
    let at = from;
    while (at < length) {
      const last = this.#to === length ? length : this.#to - margin;
      if (at >= last) this.#copy(at);
      else {
        const found = this.#find(at - this.#from, last - this.#from, lastEnd - this.#from);
        if (found >= 0) return found + this.#from;
        at = last;
      }
    }
    return length;
  }

  #find(from: number, to: number, lastEnd: number): number {
    if (from === lastEnd && this.#isAnchor(from, lastEnd)) return from;
    let place = this.#place;
    while (place < this.#count) {
      const at = hits[place] as number;
      if (at >= to) break;
      place++;
      if (at < from || !this.#isAnchor(at, lastEnd)) continue;
      this.#place = place;
      return at;
    }
    this.#place = place;
    return -1;
  }

  #isAnchor(at: number, lastEnd: number): boolean {
    const end = this.#to - this.#from;
    const code = units[at] as number;
    const next = units[at + 1];
    if (code === equals || code === colon) {
      this.kind = keyKindBefore(units, at, Math.max(0, lastEnd, at - maxLookBack));
      if (this.kind !== null || at + 2 >= end) return true;
      if (code === equals) return false;
      return (next === slash && units[at + 2] === slash) || isAfterNumber(at);
    }
    if (code !== hyphen) return mayStartToken(units, at, end);
    if (at + 5 >= end) return true;
    // Only a private key starts with more than two hyphens.
    if (units[at - 1] === hyphen || units[at + 2] === hyphen) return units[at + 5] === "B".charCodeAt(0);
    return next === hyphen;
  }

  #copy(at: number): void {
    const from = Math.max(0, at - margin);
    const part = this.#text.slice(from, from + chunkLength);
    bytes.write(part, "utf16le");
    if (!isLittleEndian) bytes.swap16();
    units.fill(0xffff, part.length, part.length + endLength);
    this.#from = from;
    this.#to = from + part.length;
    this.#count = collectHits(part.length);
    this.#place = 0;
  }
}

/** Whether a Telegram bot's number can end here. */
function isAfterNumber(at: number): boolean {
  return isInSet(digit, units[at - 1] as number) && isInSet(digit, units[at - 8] as number);
}
