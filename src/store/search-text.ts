import type { Entry } from "../core/entries.ts";
import { cutText } from "../core/text.ts";

/**
 * Splits text into search words, in the same way for every store. The words are lowercase. Identifiers are indexed both
 * whole and split, and scripts without spaces are indexed as pairs of adjacent characters.
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
/** Uses character classes without groups so that a match of several megabytes does not overflow the stack. */
const run = /[\p{L}\p{N}\p{M}_]+/gu;
const piece = new RegExp(`[${cjk}]+|[^${cjk}]+`, "gu");
const isCjk = new RegExp(`^[${cjk}]`, "u");
const part = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
const longestWord = 64;

/** Returns words in text order so that adjacent words stay adjacent. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const each of piecesOf(text)) {
    for (const word of isCjk.test(each) ? pairsOf(each) : identifierWords(each)) words.push(word);
  }
  return words;
}

/** Adjacent words. With `prefix`, the last word matches the beginning of a word. */
export interface SearchTerm {
  readonly words: readonly string[];
  readonly prefix: boolean;
}

/** An entry with any term is a hit. Entries with all phrases come first. */
export interface SearchTerms {
  readonly any: readonly SearchTerm[];
  readonly all: readonly SearchTerm[];
}

/** Additional terms in a long query are ignored. */
const mostTerms = 64;

export function termsOf(query: string): SearchTerms {
  const all: SearchTerm[] = [];
  for (const each of piecesOf(query)) {
    if (!isCjk.test(each)) all.push({ words: [cut(each.toLowerCase())], prefix: false });
    else if (Array.from(each).length === 1) all.push({ words: [each], prefix: true });
    else all.push({ words: pairsOf(each).slice(0, -1), prefix: false });
  }
  // In Chinese text without spaces, a whole sentence is one sequence, so any pair of characters might be the word that
  // is being searched for.
  const any = all.flatMap(({ words, prefix }) => words.map((word) => ({ words: [word], prefix })));
  return { any: distinct(any), all: distinct(all) };
}

function distinct(terms: readonly SearchTerm[]): SearchTerm[] {
  const byText = new Map(terms.map((term) => [`${term.words.join(" ")}${term.prefix ? " *" : ""}`, term]));
  return [...byText.values()].slice(0, mostTerms);
}

export function countOccurrences(words: readonly string[], { words: wanted, prefix }: SearchTerm): number {
  let count = 0;
  for (let start = 0; start + wanted.length <= words.length; start++) {
    const fits = wanted.every((word, offset) => {
      const found = words[start + offset] ?? "";
      return prefix && offset === wanted.length - 1 ? found.startsWith(word) : found === word;
    });
    if (fits) count += 1;
  }
  return count;
}

/** Yields sequences of letters, digits and underscores, split where the script changes. */
function* piecesOf(text: string): Generator<string> {
  for (const [each] of text.normalize("NFKC").matchAll(run)) {
    for (const [part] of each.matchAll(piece)) yield part;
  }
}

/** Returns every pair of characters, and the last character alone, so that each character starts a word. */
function pairsOf(text: string): string[] {
  const characters = Array.from(text);
  return characters.map((character, index) => character + (characters[index + 1] ?? ""));
}

function identifierWords(text: string): string[] {
  const whole = cut(text.toLowerCase());
  const parts = (text.match(part) ?? []).map((each) => cut(each.toLowerCase()));
  return parts.length > 1 ? [whole, ...parts] : [whole];
}

function cut(word: string): string {
  return word.length > longestWord ? word.slice(0, longestWord).toWellFormed() : word;
}

/** The searchable text of an entry, including tool results and arguments but not images. */
interface EntryText {
  readonly role: string;
  readonly text: string;
}

/** Returns an entry's texts, both individually and joined. Other strings are included only if they contain spaces. */
export function entryTexts(entry: Entry): string[] {
  const said = entryText(entry);
  if (said === null) return isPartial(entry) ? [partialText(entry)] : [];
  const content: unknown = entry.type === "message" ? Reflect.get(entry.message, "content") : null;
  const blocks = Array.isArray(content) ? content.map(blockText).filter((text) => text !== "") : [];
  const rest = entry.type === "message" ? textsIn(withoutPlumbing(entry.message)) : [];
  const sentences = rest.filter((text) => /\s/.test(text.trim()));
  return [said.text, ...blocks, blocks.join(""), blocks.join("\n"), ...sentences];
}

/** Whether the entry is streamed text that a run saved before its process crashed. */
export function isPartial(entry: Entry): boolean {
  return entry.type === "custom" && entry.customType === "skein.partial";
}

export function partialText(entry: Entry): string {
  const data = entry.type === "custom" ? entry.data : null;
  const text: unknown = typeof data === "object" && data !== null ? Reflect.get(data, "text") : null;
  return typeof text === "string" ? text : "";
}

function blockText(block: unknown): string {
  const text: unknown = typeof block === "object" && block !== null ? Reflect.get(block, "text") : null;
  return typeof text === "string" ? text : "";
}

export function entryText(entry: Entry): EntryText | null {
  switch (entry.type) {
    case "message":
      return { role: entry.message.role, text: textsIn(withoutPlumbing(entry.message)).join("\n") };
    case "custom_message":
      return { role: "custom", text: textsIn(entry.content).join("\n") };
    case "compaction":
    case "branch_summary":
      return { role: "summary", text: entry.summary };
    default:
      return null;
  }
}

/** Returns the written fields of a message, without its technical fields. */
function withoutPlumbing(message: object): unknown[] {
  return ["content", "command", "output", "errorMessage"].map((field) => Reflect.get(message, field));
}

const skipped = new Set([
  "type",
  "id",
  "data",
  "mimeType",
  "thinkingSignature",
  "textSignature",
  "thoughtSignature",
  "skein",
]);

/** Returns every string in a value. Not recursive, because arguments can be deeply nested. */
function textsIn(value: unknown): string[] {
  const texts: string[] = [];
  const waiting: unknown[] = [value];
  for (let next = waiting.pop(); waiting.length > 0 || next !== undefined; next = waiting.pop()) {
    if (typeof next === "string") texts.push(next);
    else if (Array.isArray(next)) for (const each of next.toReversed()) waiting.push(each);
    else if (typeof next === "object" && next !== null) {
      const fields = Object.entries(next).filter(([field]) => !skipped.has(field));
      for (const [, each] of fields.toReversed()) waiting.push(each);
    }
  }
  return texts;
}

/**
 * Statistics for the entries that the caller is allowed to see. If other entries were included, the order of hits would
 * reveal information about them.
 */
export interface SearchStatistics {
  readonly entries: number;
  /** Number of entries with each term. */
  readonly holding: readonly number[];
}

/** A fixed average length in words. The actual mean would reveal the length of entries that the caller cannot see. */
const ordinaryLength = 100;
const saturation = 1.2;
const lengthShare = 0.75;

/** Returns an entry's BM25 score, given the occurrences of each term and its length in words. Higher is better. */
export function bm25({
  entries,
  holding,
}: SearchStatistics): (counts: readonly number[], length: number) => number {
  const weights = holding.map((count) => Math.log(1 + (Math.max(0, entries - count) + 0.5) / (count + 0.5)));
  return (counts, length) => {
    const norm = saturation * (1 - lengthShare + (lengthShare * length) / ordinaryLength);
    let score = 0;
    for (const [term, weight] of weights.entries()) {
      const count = counts[term] ?? 0;
      score += (weight * count * (saturation + 1)) / (count + norm);
    }
    return score;
  };
}

const width = 160;

/** Returns one line of text around the longest matching query word, because short words occur everywhere. */
export function snippetOf(text: string, query: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  const folded = line.toLowerCase();
  const places = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .toSorted((a, b) => b.length - a.length)
    .map((word) => folded.indexOf(word))
    .filter((place) => place !== -1);
  const [first = 0] = places;
  const from = line.length <= width ? 0 : Math.max(0, first - width / 4);
  const begin = isTrail(line.charCodeAt(from)) ? from + 1 : from;
  const shown = cutText(line.slice(begin), width);
  return `${begin > 0 ? "…" : ""}${shown}${begin + shown.length < line.length ? "…" : ""}`;
}

/** Returns the start and end of each query word in a string, without overlaps. */
export function matchedRanges(text: string, query: string): [start: number, end: number][] {
  const terms = termsOf(query).any;
  const isTerm = (word: string) =>
    terms.some(({ words, prefix }) => (prefix ? word.startsWith(words[0] ?? "") : words[0] === word));
  const found: [number, number][] = [];
  for (const { start, end, word } of placedWords(text)) {
    const last = found.at(-1);
    if (!isTerm(word)) continue;
    if (last === undefined || start > last[1]) found.push([start, end]);
    else last[1] = Math.max(last[1], end);
  }
  return found;
}

interface PlacedWord {
  readonly start: number;
  readonly end: number;
  readonly word: string;
}

/** Yields the words in a string, split as in `wordsOf`, each with its position. */
function* placedWords(text: string): Generator<PlacedWord> {
  for (const each of text.matchAll(run)) {
    for (const within of each[0].matchAll(piece)) {
      const start = each.index + within.index;
      yield* isCjk.test(within[0]) ? placedPairs(within[0], start) : placedParts(within[0], start);
    }
  }
}

function* placedPairs(text: string, start: number): Generator<PlacedWord> {
  const characters = Array.from(text);
  for (const [index, word] of pairsOf(text).entries()) {
    const from = start + characters.slice(0, index).join("").length;
    yield { start: from, end: from + word.length, word: word.normalize("NFKC") };
  }
}

function* placedParts(text: string, start: number): Generator<PlacedWord> {
  const wordOf = (found: string) => cut(found.normalize("NFKC").toLowerCase());
  yield { start, end: start + text.length, word: wordOf(text) };
  for (const { 0: found, index } of text.matchAll(part))
    yield { start: start + index, end: start + index + found.length, word: wordOf(found) };
}

function isTrail(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
