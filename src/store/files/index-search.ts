import type { Scope, SearchQuery } from "../contract.ts";
import type { IndexedHit } from "../search-rank.ts";
import { compareHits } from "../search-rank.ts";
import type { SearchStatistics, SearchTerm, SearchTerms } from "../search-text.ts";
import { bm25 } from "../search-text.ts";
import type { IndexDb } from "./index-db.ts";
import { scopeWord, scopeWordCount } from "./index-db.ts";
import type { Condition } from "./index-lists.ts";
import { reachCondition } from "./index-lists.ts";

/** Only this many of the newest hits for a word are ranked. */
const mostRanked = 20_000;

/** `row` is the entry's row in the index. */
export interface FoundEntry extends IndexedHit {
  readonly uid: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
}

/** Hits, best first, with the statistics used to rank them. */
export interface FoundEntries {
  readonly statistics: SearchStatistics;
  readonly found: readonly FoundEntry[];
}

/** A search that can be sent to another thread. */
export interface WordSearch {
  readonly terms: SearchTerms;
  /** The scope as part of the full-text query. */
  readonly scope: string;
  /** Selects all entries searched, whether or not they contain the words. */
  readonly searched: Omit<Condition, "table">;
  readonly since: number;
  readonly until: number;
  readonly limit: number;
  /** Restricts the search to these sessions. `null` means the whole scope. */
  readonly reached: Condition | null;
}

export function wordSearch(
  scope: Scope,
  query: SearchQuery,
  terms: SearchTerms,
  uid: string | null,
  limit: number,
): WordSearch {
  const { userId = "", agentId } = scope;
  const { role, since = 0, until = Number.MAX_SAFE_INTEGER } = query;
  const asked = [
    scopeWord("u", userId),
    ...(agentId === undefined ? [] : [scopeWord("a", agentId)]),
    ...(uid === null ? [] : [scopeWord("s", uid)]),
    ...(role === undefined ? [] : [scopeWord("r", role)]),
  ];
  const condition = reachCondition(userId, query.reach);
  const reached = condition && {
    ...condition,
    sql: `user = ? AND ${condition.sql}`,
    values: [userId, ...condition.values],
  };
  const { sql, values, table } = reached ?? { sql: "user = ?", values: [userId], table: "sessions" };
  const sessions = [
    sql,
    ...(agentId === undefined ? [] : ["agent = ?"]),
    ...(uid === null ? [] : ["uid = ?"]),
  ];
  const searched = {
    sql: `uid IN (SELECT uid FROM ${table} WHERE ${sessions.join(" AND ")})${role === undefined ? "" : " AND role = ?"}`,
    values: [...values, agentId, uid, role].filter((value) => typeof value === "string"),
  };
  return { terms, scope: `scope : (${asked.join(" AND ")})`, searched, since, until, limit, reached };
}

const phraseOf = ({ words, prefix }: SearchTerm) => `"${words.join(" ")}"${prefix ? " *" : ""}`;

/**
 * Returns the best hits first. Entries with only some of the words are ranked only if too few entries have all of them.
 */
export function searchWords(index: IndexDb, search: WordSearch): FoundEntries {
  const whole = new Set(rowsWithAll(index, search));
  if (whole.size >= search.limit) {
    const best = rankHits(index, search, whole, [...whole]);
    if (best.found.length >= search.limit) return best;
  }
  return rankHits(index, search, whole, null);
}

/** `only` lists the rows to rank. `null` means all rows that contain a term. */
function rankHits(
  index: IndexDb,
  search: WordSearch,
  whole: ReadonlySet<number>,
  only: readonly number[] | null,
): FoundEntries {
  const { any } = search.terms;
  const hits = new Map<number, { counts: number[]; length: number }>();
  /** Returns the number of entries with each term. */
  const count = (rows: readonly number[] | null) =>
    any.map((term, at) => {
      const counted = countTerm(index, term, search, rows);
      for (const { row, count, length } of counted) {
        const hit = hits.get(row) ?? { counts: any.map(() => 0), length };
        hit.counts[at] = count;
        hits.set(row, hit);
      }
      return counted.length;
    });
  const counted = count(only);
  const holding = only === null ? counted : any.map((term) => countHolding(index, term, search));
  // An entry with all words is ranked even if too many newer entries have some of them.
  const older =
    only === null ? [...whole].filter((row) => hits.get(row)?.counts.every(Boolean) !== true) : [];
  if (older.length > 0) count(older);
  const statistics = { entries: countSearched(index, search), holding };
  const scoreOf = bm25(statistics);
  const ranked = [...hits].map(([row, { counts, length }]) => ({
    row,
    hasAllWords: whole.has(row),
    score: scoreOf(counts, length),
    counts,
    length,
  }));
  return { statistics, found: firstEntries(index, ranked.toSorted(compareHits), search) };
}

function countSearched({ db }: IndexDb, { searched }: WordSearch): number {
  const row = db.sql(`SELECT count(*) AS count FROM said WHERE ${searched.sql}`).get(...searched.values);
  return Number(row?.count);
}

/**
 * Returns rows, newest first. Sessions out of reach are excluded before the limit applies, so they cannot crowd out
 * others.
 */
function hitRows(
  { db }: IndexDb,
  columns: string,
  body: string,
  { scope, reached }: WordSearch,
  only: readonly number[] | null = null,
): Record<string, unknown>[] {
  const within =
    reached === null
      ? "WHERE words MATCH ?"
      : `CROSS JOIN said AS heard ON heard.id = words.rowid
         WHERE words MATCH ? AND heard.uid IN (SELECT uid FROM ${reached.table} WHERE ${reached.sql})`;
  // The plus prevents SQLite from querying the index again for each row.
  const among = only === null ? "" : "AND +words.rowid IN (SELECT value FROM json_each(?))";
  const rows = only === null ? [] : [JSON.stringify(only)];
  return db
    .sql(`SELECT ${columns} FROM words ${within} ${among} ORDER BY words.rowid DESC LIMIT ${mostRanked}`)
    .all(`${scope} AND body : (${body})`, ...(reached?.values ?? []), ...rows);
}

/** A weight that makes one occurrence count as infinitely many. */
const heavy = "1e12";
/** An entry's normalized length in `bm25`. It can be computed because scope words occur exactly once per entry. */
const normColumn = `bm25(words, ${heavy}, 0.0) / bm25(words, 1.0, 0.0) - 1 AS norm`;
const shareColumn = `bm25(words, 0.0, 1.0) / bm25(words, 0.0, ${heavy}) AS share`;

function rowsWithAll(index: IndexDb, search: WordSearch): number[] {
  const body = search.terms.all.map(phraseOf).join(" AND ");
  return hitRows(index, "words.rowid AS row", body, search).map(({ row }) => Number(row));
}

function countHolding(index: IndexDb, term: SearchTerm, search: WordSearch): number {
  return hitRows(index, "1", phraseOf(term), search).length;
}

/**
 * Counts the occurrences of a term in each entry. SQL can access the index only through `bm25`, whose statistics cover
 * all users but cancel out here. For a term that occurs `count` times, `bm25` is `weight * count / (count + norm)`. For
 * an infinitely heavy column, it is `weight`.
 */
function countTerm(
  index: IndexDb,
  term: SearchTerm,
  search: WordSearch,
  only: readonly number[] | null,
): { readonly row: number; readonly count: number; readonly length: number }[] {
  const columns = `words.rowid AS row, ${shareColumn}, ${normColumn}`;
  const rows = hitRows(index, columns, phraseOf(term), search, only);
  const lengthOf = lengthByNorm(index);
  return rows.map((hit) => {
    const [share, norm] = [Number(hit.share), Number(hit.norm)];
    const count = Math.max(1, Math.round((norm * share) / (1 - share)));
    return { row: Number(hit.row), count, length: lengthOf(norm) };
  });
}

/** Returns a function that converts `bm25`'s normalized length to words. */
function lengthByNorm(index: IndexDb): (norm: number) => number {
  const mean = meanWords(index);
  return (norm) => Math.round(((norm / 1.2 - 0.25) / 0.75) * mean) - scopeWordCount;
}

/** FTS5 stores the number of entries and the number of words in each column as varints. */
function meanWords({ db }: IndexDb): number {
  const block = (db.sql("SELECT block FROM words_data WHERE id = 1").get()?.block ?? []) as Uint8Array;
  const numbers: number[] = [];
  let value = 0;
  for (const byte of block) {
    value = value * 128 + (byte & 127);
    if (byte > 127) continue;
    numbers.push(value);
    value = 0;
  }
  const [entries = 1, scopeWords = 0, bodyWords = 0] = numbers;
  return (scopeWords + bodyWords) / entries;
}

/** Returns the first hits within the requested time range. */
function firstEntries(
  { db }: IndexDb,
  ranked: readonly Omit<FoundEntry, "uid" | "entryId" | "role" | "time">[],
  { since, until, limit }: WordSearch,
): FoundEntry[] {
  const found: FoundEntry[] = [];
  const said = db.sql("SELECT uid, entry_id, role, time FROM said WHERE id = ?");
  for (const hit of ranked) {
    if (found.length >= limit) break;
    const entry = said.get(hit.row);
    const time = Number(entry?.time);
    if (entry === undefined || time < since || time > until) continue;
    found.push({
      ...hit,
      uid: String(entry.uid),
      entryId: String(entry.entry_id),
      role: String(entry.role),
      time,
    });
  }
  return found;
}
