import type { Entry } from "../../core/entries.ts";
import { hashOf } from "../rules.ts";
import type { SearchTerm } from "../search-text.ts";
import { entryText, wordsOf } from "../search-text.ts";

/** Words in the form of PostgreSQL's `tsvector` and `tsquery`. */

/**
 * Every word in the index starts with a prefix for its user. A search therefore reads only the user's part of the
 * index, even for a word that all users write.
 */
export function wordPrefix(user: string): string {
  return hashOf(Buffer.from(user)).slice(0, 8);
}

/** A `tsvector` keeps at most this many positions of a word. More occurrences hardly change a rank. */
const mostPositions = 255;
/** Well below the 1 MB limit of a `tsvector`. */
const mostVectorBytes = 400_000;

/** A row for the search, without the columns that identify the entry. */
interface SearchRow {
  readonly part: number;
  readonly role: string;
  readonly time: number;
  /** Number of words in the whole entry. */
  readonly length: number;
  readonly words: string;
}

/** Returns the rows for an entry. Empty if it has no words. */
export function searchRows(user: string, entry: Entry): SearchRow[] {
  const said = entryText(entry);
  const words = said === null ? [] : wordsOf(said.text);
  if (said === null || words.length === 0) return [];
  const time = Date.parse(entry.timestamp) || 0;
  return vectorsOf(words, wordPrefix(user)).map((vector, part) => ({
    part,
    role: said.role,
    time,
    length: words.length,
    words: vector,
  }));
}

/**
 * Positions only count the occurrences. Their values mean nothing, because the real ones end at 16,383, so phrases are
 * checked in the text instead.
 */
function vectorsOf(words: readonly string[], prefix: string): string[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const vectors: string[] = [];
  let [parts, bytes]: [string[], number] = [[], 0];
  for (const [word, count] of counts) {
    const positions = Array.from({ length: Math.min(count, mostPositions) }, (_, index) => index + 1);
    parts.push(`'${prefix}${word}':${positions.join(",")}`);
    bytes += Buffer.byteLength(word) + prefix.length + 2 * positions.length + 8;
    if (bytes < mostVectorBytes) continue;
    vectors.push(parts.join(" "));
    [parts, bytes] = [[], 0];
  }
  return parts.length === 0 ? vectors : [...vectors, parts.join(" ")];
}

/** Returns a query for entries with at least one of the terms. Each term is a single word. */
export function anyOf(terms: readonly SearchTerm[], prefix: string): string {
  return terms.map((term) => `'${prefix}${term.words[0]}'${term.prefix ? ":*" : ""}`).join(" | ");
}
