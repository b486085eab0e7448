import type { Scope, SearchQuery } from "../contract.ts";
import type { SearchStatistics, SearchTerm, SearchTerms } from "../search-text.ts";
import { bm25 } from "../search-text.ts";
import type { IndexDb } from "./index-db.ts";
import { scopeWord, scopeWordCount } from "./index-db.ts";
import type { Condition } from "./index-lists.ts";
import { reachCondition } from "./index-lists.ts";

/** Hits of a word beyond so many, from the newest on, are not ranked. */
const mostRanked = 20_000;

export interface FoundEntry {
  /** Its row in the index. Of equal hits, the higher row comes first. */
  readonly row: number;
  readonly hasAllWords: boolean;
  /** Higher is better. */
  readonly score: number;
  /** How often each term of the query occurs in it. */
  readonly counts: readonly number[];
  /** In words. */
  readonly length: number;
  readonly uid: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
}

/** Hits, best first, and what they were ranked by. */
export interface FoundEntries {
  readonly statistics: SearchStatistics;
  readonly found: readonly FoundEntry[];
}

/** A search, made up so that it can be sent to another thread. */
export interface WordSearch {
  readonly terms: SearchTerms;
  /** The words of the scope, as a part of a full-text query. */
  readonly scope: string;
  /** Finds every entry that is searched, whatever words it has. */
  readonly searched: Omit<Condition, "table">;
  readonly since: number;
  readonly until: number;
  readonly limit: number;
  /** Of the sessions that are searched; `null`: all of the scope. */
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

/** Best first, those with all words before the others, which are looked at only where these are too few. */
export function searchWords(index: IndexDb, search: WordSearch): FoundEntries {
  const whole = new Set(rowsWithAll(index, search));
  if (whole.size >= search.limit) {
    const best = rankHits(index, search, whole, [...whole]);
    if (best.found.length >= search.limit) return best;
  }
  return rankHits(index, search, whole, null);
}

/** `only`: the rows that are ranked; `null`: all that hold a term. */
function rankHits(
  index: IndexDb,
  search: WordSearch,
  whole: ReadonlySet<number>,
  only: readonly number[] | null,
): FoundEntries {
  const { any } = search.terms;
  const hits = new Map<number, { counts: number[]; length: number }>();
  /** Returns how many entries hold each term. */
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
  // An entry with all words is ranked even where newer entries with one of them are too many.
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

/** The order of hits: all words first, then the better, then the newer. */
export function compareHits(one: HitPlace, other: HitPlace): number {
  const isFirst = Number(other.hasAllWords) - Number(one.hasAllWords);
  return isFirst || other.score - one.score || other.row - one.row;
}

export type HitPlace = Pick<FoundEntry, "row" | "score" | "hasAllWords">;

/** Entries that the asker may see. */
function countSearched({ db }: IndexDb, { searched }: WordSearch): number {
  const row = db.sql(`SELECT count(*) AS count FROM said WHERE ${searched.sql}`).get(...searched.values);
  return Number(row?.count);
}

/** From the newest on. Sessions out of reach are left out before anything is cut off: their hits cannot crowd out the others. */
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
  // The plus keeps it from asking the index again for each of the rows.
  const among = only === null ? "" : "AND +words.rowid IN (SELECT value FROM json_each(?))";
  const rows = only === null ? [] : [JSON.stringify(only)];
  return db
    .sql(`SELECT ${columns} FROM words ${within} ${among} ORDER BY words.rowid DESC LIMIT ${mostRanked}`)
    .all(`${scope} AND body : (${body})`, ...(reached?.values ?? []), ...rows);
}

/** So heavy that one occurrence counts as infinitely many. */
const heavy = "1e12";
/** What `bm25` makes of an entry's length. Words of the scope occur once in each entry, which shows it. */
const normColumn = `bm25(words, ${heavy}, 0.0) / bm25(words, 1.0, 0.0) - 1 AS norm`;
const shareColumn = `bm25(words, 0.0, 1.0) / bm25(words, 0.0, ${heavy}) AS share`;

/** Entries that hold every phrase. */
function rowsWithAll(index: IndexDb, search: WordSearch): number[] {
  const body = search.terms.all.map(phraseOf).join(" AND ");
  return hitRows(index, "words.rowid AS row", body, search).map(({ row }) => Number(row));
}

function countHolding(index: IndexDb, term: SearchTerm, search: WordSearch): number {
  return hitRows(index, "1", phraseOf(term), search).length;
}

/**
 * How often a term occurs in each entry that holds it. The index tells this to SQL through `bm25` alone, whose statistics are of
 * all users: they cancel out here. For a term that occurs `count` times `bm25` is `weight * count / (count + norm)`, and `weight`
 * where the column is infinitely heavy.
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

/** The length of an entry in words, from the `norm` of `bm25`, which is relative to the mean length of all entries. */
function lengthByNorm(index: IndexDb): (norm: number) => number {
  const mean = meanWords(index);
  return (norm) => Math.round(((norm / 1.2 - 0.25) / 0.75) * mean) - scopeWordCount;
}

/** As the index keeps it: the number of entries, and the words of each column, as varints. */
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

/** The first hits that are from the time that was asked for. */
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
