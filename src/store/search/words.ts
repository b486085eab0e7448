import type { AnswerMark } from "./answer-marks.ts";
import { marksOf } from "./answer-marks.ts";
import { stemWord } from "./stem-word.ts";
import { baseForms } from "./word-forms.ts";

/**
 * Splits text into search words, in the same way for every store. English words are reduced to their stems. Scripts
 * without spaces are indexed as pairs of adjacent characters.
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
/** Without groups and with a limit, because a match of several megabytes could overflow the stack. */
const run = /[\p{L}\p{N}\p{M}_]{1,50000}/gu;
const piece = new RegExp(`[${cjk}]+|[^${cjk}]+`, "gu");
const isCjk = new RegExp(`^[${cjk}]`, "u");
const hasCjk = new RegExp(`[${cjk}]`, "u");
const part = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
const longestWord = 64;

/** In a group, messages often start with the speaker's name. The name then counts as one more occurrence. */
const speaker = /^\s*(\p{Lu}[\p{L}\p{M}'’.-]{0,40}(?: \p{Lu}[\p{L}\p{M}'’.-]{0,40}){0,2}): /u;

/** The words of a text. */
export interface TextWords {
  /** In text order, so that adjacent words stay adjacent. */
  readonly words: readonly string[];
  /**
   * Parts of identifiers, joined forms such as `1_26_2` for 1.26.2, and single characters of scripts without spaces.
   */
  readonly parts: readonly string[];
  readonly marks: readonly AnswerMark[];
}

export interface PlacedWord {
  readonly start: number;
  readonly end: number;
  readonly word: string;
  readonly isPart: boolean;
}

export function wordsOf(text: string): TextWords {
  const [words, parts]: [string[], string[]] = [[], []];
  const [, name = ""] = speaker.exec(text) ?? [];
  for (const { word, isPart } of placedWords(text.normalize("NFKC"))) (isPart ? parts : words).push(word);
  for (const { word } of placedWords(name)) parts.push(word);
  return { words, parts, marks: marksOf(text, words) };
}

/** Yields the words in a string with their positions. A word comes before its parts. */
export function* placedWords(text: string): Generator<PlacedWord> {
  let [start, end] = [0, 0];
  for (const { 0: found, index } of text.matchAll(run)) {
    // `search.ts`, `1.26.2` and `well-known` are also indexed as a whole.
    if (end !== index - 1 || !/[.-]/.test(text.charAt(end))) {
      yield* joinedWord(text, start, end);
      start = index;
    }
    end = index + found.length;
    if (!hasCjk.test(found)) yield* identifierWords(found, index);
    else
      for (const { 0: each, index: within } of found.matchAll(piece))
        yield* isCjk.test(each) ? pairs(each, index + within) : identifierWords(each, index + within);
  }
  yield* joinedWord(text, start, end);
}

function* joinedWord(text: string, start: number, end: number): Generator<PlacedWord> {
  if (end - start > longestWord) return;
  const found = text.slice(start, end);
  if (!/[.-]/.test(found)) return;
  yield {
    start,
    end,
    word: fold(found)
      .replace(/[.-]/g, "_")
      .replace(/^v(?=\d)/, ""),
    isPart: true,
  };
}

/** Yields every pair of adjacent characters, and each character as a part. A single character is a word. */
function* pairs(text: string, from: number): Generator<PlacedWord> {
  let start = from;
  const characters = Array.from(text);
  for (const [index, character] of characters.entries()) {
    const next = characters[index + 1];
    const end = start + character.length;
    const isPart = characters.length > 1;
    if (next !== undefined)
      yield { start, end: end + next.length, word: (character + next).normalize("NFKC"), isPart: false };
    yield { start, end, word: character.normalize("NFKC"), isPart };
    start = end;
  }
}

function* identifierWords(text: string, start: number): Generator<PlacedWord> {
  const isSimple = known.has(text) || /^(?:\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}+)$/u.test(text);
  const found = isSimple ? [] : [...text.matchAll(part)];
  const isWhole = found.length > 1;
  yield { start, end: start + text.length, word: isWhole ? makeBase(text) : baseOf(text), isPart: false };
  if (!isWhole) return;
  for (const { 0: each, index } of found)
    yield { start: start + index, end: start + index + each.length, word: baseOf(each), isPart: true };
}

/** The base forms of frequent words without parts. */
const known = new Map<string, string>();
const mostKnown = 20_000;

function baseOf(text: string): string {
  const made = known.get(text);
  if (made !== undefined) return made;
  const base = makeBase(text);
  if (known.size >= mostKnown) known.clear();
  if (text.length <= longestWord) known.set(text, base);
  return base;
}

/** Returns a word's lowercase stem, without the accents of Latin letters. */
function makeBase(text: string): string {
  const folded = fold(text);
  const word = baseForms.get(folded) ?? baseForms.get(folded.replace(/s$/, "")) ?? folded;
  return cut(/^[a-z]+$/.test(word) ? stemWord(word) : word);
}

export function fold(text: string): string {
  const lower = text.normalize("NFKC").toLowerCase();
  if (/^[\x20-\x7e]*$/.test(lower)) return lower;
  return lower
    .normalize("NFD")
    .replace(/(?<=\p{Script=Latin})\p{M}+/gu, "")
    .normalize("NFC");
}

function cut(word: string): string {
  return word.length > longestWord ? word.slice(0, longestWord).toWellFormed() : word;
}

/**
 * A text's words as numbers, so that occurrences and distances can be counted without the text. Contains the words in
 * order, a zero, the marks and the parts.
 */
export type WordCodes = Uint32Array;

/** Words beyond this limit are still found, but each counts only once, and its distances are unknown. */
const mostCodes = 2048;

export function codesOf({ words, parts, marks }: TextWords): WordCodes {
  const counted = Math.min(words.length, mostCodes);
  const others = [...marks, ...parts.slice(0, mostCodes)];
  const codes = new Uint32Array(counted + 1 + others.length);
  for (let at = 0; at < counted; at++) codes[at] = codeOf(words[at] ?? "");
  for (const [at, other] of others.entries()) codes[counted + 1 + at] = codeOf(other);
  return codes;
}

/** Returns a hash (FNV-1a) that is never zero. */
export function codeOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < word.length; index++)
    hash = Math.imul(hash ^ word.charCodeAt(index), 0x01000193);
  return hash >>> 0 || 1;
}
