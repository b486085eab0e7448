import type { Entry } from "../../core/entries.ts";
import { hashOf } from "../rules.ts";
import type { TextWords } from "../search/words.ts";
import { codesOf, wordsOf } from "../search/words.ts";
import { entryText } from "../search-text.ts";

/** Words in the form of PostgreSQL's `tsvector` and `tsquery`. */

/**
 * Every word in the index starts with a prefix for its user. A search therefore reads only the user's part of the
 * index, even for a word that all users write.
 */
export function wordPrefix(user: string): string {
  return hashOf(Buffer.from(user)).slice(0, 8);
}

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
  /** The word codes of the whole entry in the first row, as hexadecimal bytes. Empty in its other rows. */
  readonly codes: string;
}

/** Returns the rows for an entry. Empty if it has no words. */
export function searchRows(user: string, entry: Entry): SearchRow[] {
  const said = entryText(entry);
  const text = said === null ? null : wordsOf(said.text);
  if (said === null || text === null || text.words.length === 0) return [];
  const time = Date.parse(entry.timestamp) || 0;
  const codes = Buffer.from(codesOf(text).buffer).toString("hex");
  return vectorsOf(text, wordPrefix(user)).map((vector, part) => ({
    part,
    role: said.role,
    time,
    length: text.words.length,
    words: vector,
    codes: `\\x${part === 0 ? codes : ""}`,
  }));
}

function vectorsOf({ words, parts }: TextWords, prefix: string): string[] {
  const vectors: string[] = [];
  let [some, bytes]: [string[], number] = [[], 0];
  for (const word of new Set([...words, ...parts])) {
    some.push(lexeme(prefix, word));
    bytes += Buffer.byteLength(word) + prefix.length + 8;
    if (bytes < mostVectorBytes) continue;
    vectors.push(some.join(" "));
    [some, bytes] = [[], 0];
  }
  return some.length === 0 ? vectors : [...vectors, some.join(" ")];
}

/** Returns a word as part of a `tsvector` or `tsquery`. */
export function lexeme(prefix: string, word: string): string {
  return `'${prefix}${word}'`;
}
