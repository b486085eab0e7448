import type { Entry } from "../core/entries.ts";
import { cutText } from "../core/text.ts";

/**
 * Words of a text for searching, the same in every store: lower-cased words, identifiers whole and in their parts,
 * and for scripts without spaces the pairs of neighbouring characters.
 */

const cjk = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}";
/** Plain classes, no groups: a run of megabytes must not cost stack. */
const run = /[\p{L}\p{N}\p{M}_]+/gu;
const piece = new RegExp(`[${cjk}]+|[^${cjk}]+`, "gu");
const isCjk = new RegExp(`^[${cjk}]`, "u");
const part = /\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{N}+/gu;
const longestWord = 64;

/** In the order of the text, so that neighbours in it are neighbours here. */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const each of piecesOf(text)) {
    for (const word of isCjk.test(each) ? pairsOf(each) : identifierWords(each)) words.push(word);
  }
  return words;
}

/** Words that stand next to each other; of the last one only the beginning, if `prefix`. */
export interface SearchTerm {
  readonly words: readonly string[];
  readonly prefix: boolean;
}

/** What a query looks for. An entry with any of the terms is a hit; entries with all of the phrases come first. */
export interface SearchTerms {
  readonly any: readonly SearchTerm[];
  readonly all: readonly SearchTerm[];
}

/** The rest of a longer query changes no ranking that matters. */
const mostTerms = 64;

export function termsOf(query: string): SearchTerms {
  const all: SearchTerm[] = [];
  for (const each of piecesOf(query)) {
    if (!isCjk.test(each)) all.push({ words: [cut(each.toLowerCase())], prefix: false });
    else if (Array.from(each).length === 1) all.push({ words: [each], prefix: true });
    else all.push({ words: pairsOf(each).slice(0, -1), prefix: false });
  }
  // A run of Chinese is a whole sentence: any pair of its characters may be the word that is looked for.
  const any = all.flatMap(({ words, prefix }) => words.map((word) => ({ words: [word], prefix })));
  return { any: distinct(any), all: distinct(all) };
}

function distinct(terms: readonly SearchTerm[]): SearchTerm[] {
  const byText = new Map(terms.map((term) => [`${term.words.join(" ")}${term.prefix ? " *" : ""}`, term]));
  return [...byText.values()].slice(0, mostTerms);
}

/** How often a term occurs among the words of a text. */
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

/** Runs of letters, digits and underscores, parted where the script changes. */
function* piecesOf(text: string): Generator<string> {
  for (const [each] of text.normalize("NFKC").matchAll(run)) {
    for (const [part] of each.matchAll(piece)) yield part;
  }
}

/** Every pair, and the last character alone, so that each character begins a word. */
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

/** What an entry says, for searching: all its texts, tool results and call arguments too, images not. */
interface EntryText {
  readonly role: string;
  readonly text: string;
}

/** The texts of an entry one by one, and together as a reply has them. Other strings count only where they are sentences. */
export function entryTexts(entry: Entry): string[] {
  const said = entryText(entry);
  if (said === null) return isPartial(entry) ? [partialText(entry)] : [];
  const content: unknown = entry.type === "message" ? Reflect.get(entry.message, "content") : null;
  const blocks = Array.isArray(content) ? content.map(blockText).filter((text) => text !== "") : [];
  const rest = entry.type === "message" ? textsIn(withoutPlumbing(entry.message)) : [];
  const sentences = rest.filter((text) => /\s/.test(text.trim()));
  return [said.text, ...blocks, blocks.join(""), blocks.join("\n"), ...sentences];
}

/** What a run had streamed before its process died. */
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

/** The fields of a message that somebody wrote, not those that say how it came about. */
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

/** Every string in a value, without recursion: arguments may nest as deep as they like. */
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

/** How search hits are ranked, the same in every store. */

/** What the entries that an asker may see have of a query. Entries of other sessions must not count: the order would tell of them. */
export interface SearchStatistics {
  /** Entries that the asker may see. */
  readonly entries: number;
  /** How many of them hold each term of the query. */
  readonly holding: readonly number[];
}

/** Words of an entry of ordinary length. It is fixed: a mean would tell how long the entries are that an asker cannot see. */
const ordinaryLength = 100;
const saturation = 1.2;
const lengthShare = 0.75;

/** BM25 of an entry, by how often each term occurs in it and by its length in words. Higher is better. */
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

/** One line of text around the longest word of the query that stands in it: short words stand everywhere. */
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

function isTrail(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
