import type { Scope, SearchQuery } from "../contract.ts";
import type { QueryTerms } from "../search/query-terms.ts";
import type { SearchStatistics } from "../search/rank.ts";
import { mostScored, Ranker } from "../search/rank.ts";
import type { IndexedText, RankedEntry, ScoredEntry, Surroundings } from "../search/rank-hits.ts";
import { rankEntries, scoreEntries } from "../search/rank-hits.ts";
import type { WordCodes } from "../search/words.ts";
import type { IndexDb } from "./index-db.ts";
import { scopeWord, userPrefix } from "./index-db.ts";
import type { Condition } from "./index-lists.ts";
import { reachCondition } from "./index-lists.ts";

/** For each word, only this many of the newest entries that contain it are considered. */
const mostRows = 20_000;
/** Words are looked up from the rarest to the most common until this many entries have been considered. */
const mostConsidered = 60_000;

/** An entry that can be read from its log. `row` is its row in the index. */
export interface FoundEntry {
  readonly row: number;
  readonly uid: string;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
  readonly length: number;
}

/** Hits, best first, with the statistics used to rank them. */
export interface FoundEntries {
  readonly statistics: SearchStatistics;
  readonly found: readonly RankedEntry<FoundEntry>[];
}

/** A search that can be sent to another thread. */
export interface WordSearch {
  readonly terms: QueryTerms;
  /** Precedes every word of the user. */
  readonly prefix: string;
  /** Words that every hit contains. */
  readonly scope: readonly string[];
  /** The condition for the totals of all entries searched, including entries that contain none of the words. */
  readonly searched: Omit<Condition, "table">;
  readonly role: string | null;
  readonly since: number;
  readonly until: number;
  readonly limit: number;
  /** Restricts the search to these sessions. `null` means the whole scope. */
  readonly reached: Condition | null;
}

export function wordSearch(
  scope: Scope,
  query: SearchQuery,
  terms: QueryTerms,
  uid: string | null,
  limit: number,
): WordSearch {
  const { userId = "", agentId } = scope;
  const { role, since = 0, until = Number.MAX_SAFE_INTEGER } = query;
  const asked = [
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
  const prefix = userPrefix(userId);
  return { terms, prefix, scope: asked, searched, role: role ?? null, since, until, limit, reached };
}

/** Returns the best hits first. */
export function searchWords(index: IndexDb, search: WordSearch): FoundEntries {
  const finder = new CandidateFinder(index, search);
  const statistics = { entries: countSearched(index, search), holding: finder.holding };
  const ranker = new Ranker(search.terms, statistics);
  const candidates = readEntries(index, search, finder.find(), ranker.weights);
  const { scored, sources } = scoreEntries(ranker, candidates);
  const surroundings = sources.map((entry) => readAround(index, search, entry));
  const ranked = rankEntries(ranker, scored, surroundings).slice(0, search.limit);
  return { statistics, found: withoutCodes(ranked) };
}

function countSearched({ db }: IndexDb, { searched }: WordSearch): number {
  const sql = `SELECT coalesce(sum(entries), 0) AS count FROM said_totals WHERE ${searched.sql}`;
  return Number(db.sql(sql).get(...searched.values)?.count);
}

/** The terms that are known to be in an entry, as a bit mask. */
type Held = number;

/** A search reads the rows for this many words without counting the rows first. */
const fewWords = 3;

/** Looks up rare words first, so that common words cannot crowd them out. */
class CandidateFinder {
  readonly #index: IndexDb;
  readonly #search: WordSearch;
  readonly #rows = new Map<number, readonly number[]>();
  readonly holding: readonly number[];

  constructor(index: IndexDb, search: WordSearch) {
    this.#index = index;
    this.#search = search;
    const { terms } = search.terms;
    this.holding = terms.map(({ word }, at) =>
      terms.length > fewWords ? countRows(index, search, word) : this.#rowsOf(at).length,
    );
  }

  find(): Map<number, Held> {
    const found = new Map<number, Held>();
    let considered = 0;
    const order = [...this.holding.keys()].filter((at) => this.#holding(at) > 0);
    for (const at of order.toSorted((one, other) => this.#holding(one) - this.#holding(other))) {
      if (considered >= mostConsidered) break;
      const rows = this.#rowsOf(at);
      considered += rows.length;
      for (const row of rows) found.set(row, (found.get(row) ?? 0) + 2 ** at);
    }
    for (const row of this.#rowsWithAll()) found.set(row, 2 ** this.holding.length - 1);
    return found;
  }

  /** An entry with all words is considered even if too many newer entries have some of them. */
  #rowsWithAll(): readonly number[] {
    const words = [...new Set(this.#search.terms.all.flat())];
    const isCut = this.holding.some((count) => count >= mostRows);
    return isCut && words.length > 1 ? findRows(this.#index, this.#search, words, mostScored) : [];
  }

  #holding(at: number): number {
    return this.holding[at] ?? 0;
  }

  #rowsOf(at: number): readonly number[] {
    const word = this.#search.terms.terms[at]?.word ?? "";
    const rows = this.#rows.get(at) ?? findRows(this.#index, this.#search, [word], mostRows);
    this.#rows.set(at, rows);
    return rows;
  }
}

function termsIn(held: Held, weights: readonly number[]): number[] {
  return [...weights.keys()].filter((at) => Math.floor(held / 2 ** at) % 2 === 1);
}

/**
 * Yields rows in groups of up to `mostScored`, the rows with the most weight first. Among rows with the same terms, the
 * newest come first.
 */
function* byWeight(candidates: ReadonlyMap<number, Held>, weights: readonly number[]): Generator<number[]> {
  const rows = new Map<Held, number[]>();
  for (const [row, held] of candidates) {
    const same = rows.get(held);
    if (same === undefined) rows.set(held, [row]);
    else same.push(row);
  }
  const weightOf = (held: Held) => termsIn(held, weights).reduce((sum, at) => sum + (weights[at] ?? 0), 0);
  const heaviest = [...rows.keys()].map((held) => ({ held, weight: weightOf(held) }));
  let group: number[] = [];
  for (const { held } of heaviest.sort((one, other) => other.weight - one.weight))
    for (const row of Float64Array.from(rows.get(held) ?? [])
      .sort()
      .reverse()) {
      group.push(row);
      if (group.length < mostScored) continue;
      yield group;
      group = [];
    }
  yield group;
}

interface IndexedRow extends FoundEntry, IndexedText {}

/** Reads the candidates with the most weight. */
function readEntries(
  { db }: IndexDb,
  search: WordSearch,
  candidates: ReadonlyMap<number, Held>,
  weights: readonly number[],
): IndexedRow[] {
  const found: IndexedRow[] = [];
  const sql = `SELECT ${columns} FROM said WHERE id IN (SELECT value FROM json_each(?))`;
  for (const some of byWeight(candidates, weights)) {
    if (found.length >= mostScored) break;
    const read = db
      .sql(sql)
      .all(JSON.stringify(some))
      .map((row) => indexedRow(row, termsIn(candidates.get(Number(row.id)) ?? 0, weights)));
    const byRow = new Map(read.map((entry) => [entry.row, entry]));
    const within = some
      .map((row) => byRow.get(row))
      .filter((entry) => entry !== undefined && isWithin(search, entry));
    found.push(...(within as IndexedRow[]).slice(0, mostScored - found.length));
  }
  return found;
}

const columns = "id, uid, entry_id, role, time, length, codes";

function indexedRow(row: Record<string, unknown>, held: readonly number[]): IndexedRow {
  return {
    row: Number(row.id),
    position: Number(row.id),
    uid: String(row.uid),
    entryId: String(row.entry_id),
    role: String(row.role),
    time: Number(row.time),
    length: Number(row.length),
    codes: codesIn(row.codes as Uint8Array),
    held,
  };
}

function codesIn(bytes: Uint8Array): WordCodes {
  const { buffer, byteOffset, byteLength } = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  return new Uint32Array(buffer, byteOffset, byteLength / 4);
}

function isWithin({ role, since, until }: WordSearch, entry: FoundEntry): boolean {
  return entry.time >= since && entry.time <= until && (role === null || entry.role === role);
}

/** Reads an entry's neighbors in its session. A neighbor that is not searched is `null`. */
function readAround({ db }: IndexDb, search: WordSearch, entry: IndexedRow): Surroundings<IndexedRow> {
  const read = (order: string) =>
    db
      .sql(`SELECT ${columns} FROM said WHERE uid = ? AND id ${order} LIMIT 2`)
      .all(entry.uid, entry.row)
      .map((row) => indexedRow(row, []))
      .map((near) => (isWithin(search, near) ? near : null));
  const [before = null, earlier = null] = read("< ? ORDER BY id DESC");
  const [after = null, later = null] = read("> ? ORDER BY id");
  return [earlier, before, entry, after, later];
}

/** Drops the fields that only ranking needs, so that less data is sent between threads. */
function withoutCodes(hits: readonly RankedEntry<IndexedRow>[]): RankedEntry<FoundEntry>[] {
  const made = new Map<number, ScoredEntry<FoundEntry>>();
  const bare = ({ entry: { codes: _, held: __, position: ___, ...entry }, own }: ScoredEntry<IndexedRow>) => {
    const known = made.get(entry.row) ?? { entry, own };
    made.set(entry.row, known);
    return known;
  };
  const shared = new Map<readonly ScoredEntry<IndexedRow>[], readonly ScoredEntry<FoundEntry>[]>();
  const bareAll = (witnesses: readonly ScoredEntry<IndexedRow>[]) => {
    const known = shared.get(witnesses) ?? witnesses.map(bare);
    shared.set(witnesses, known);
    return known;
  };
  return hits.map(({ row, hasAllWords, score, own, around, ...hit }) => {
    const inSession = hit.inSession.map(({ term, witnesses, nearest, distance }) => ({
      ...{ term, distance, witnesses: bareAll(witnesses) },
      nearest: nearest === null ? null : bare(nearest),
    }));
    const near = around.map((each) => (each === null || each.own.score === 0 ? null : bare(each)));
    return {
      row,
      hasAllWords,
      score,
      own,
      entry: bare({ entry: hit.entry, own }).entry,
      around: near,
      inSession,
    };
  });
}

/** Returns the newest entries with all of these words. */
function findRows({ db }: IndexDb, search: WordSearch, words: readonly string[], limit: number): number[] {
  const { sql, values } = matching(search, words);
  const joined = `SELECT group_concat(row) AS rows FROM (SELECT words.rowid AS row ${sql} ORDER BY words.rowid DESC LIMIT ?)`;
  const rows = db.sql(joined).get(...values, limit)?.rows;
  return typeof rows === "string" ? rows.split(",").map(Number) : [];
}

function countRows({ db }: IndexDb, search: WordSearch, word: string): number {
  const { sql, values } = matching(search, [word]);
  const count = `SELECT count(*) AS count FROM (SELECT 1 ${sql} ORDER BY words.rowid DESC LIMIT ?)`;
  return Number(db.sql(count).get(...values, mostRows)?.count);
}

/** Sessions out of reach are excluded before the limit applies, so they cannot crowd out others. */
function matching(
  { prefix, scope, reached }: WordSearch,
  words: readonly string[],
): { readonly sql: string; readonly values: readonly string[] } {
  const match = [...words, ...scope].map((word) => `"${prefix}${word}"`).join(" AND ");
  if (reached === null) return { sql: "FROM words WHERE words MATCH ?", values: [match] };
  return {
    sql: `FROM words CROSS JOIN said AS heard ON heard.id = words.rowid
      WHERE words MATCH ? AND heard.uid IN (SELECT uid FROM ${reached.table} WHERE ${reached.sql})`,
    values: [match, ...reached.values.map(String)],
  };
}
