import type { Scope, SearchHit, SearchQuery, SearchStore } from "../contract.ts";
import { hitLimit } from "../list-query.ts";
import type { CheckedText } from "../search/check-hits.ts";
import { HitChecker } from "../search/check-hits.ts";
import type { QueryTerms } from "../search/query-terms.ts";
import { queryTerms, withFilters } from "../search/query-terms.ts";
import type { SearchStatistics } from "../search/rank.ts";
import { mostScored, Ranker } from "../search/rank.ts";
import type { IndexedText, Surroundings } from "../search/rank-hits.ts";
import { rankEntries, scoreEntries } from "../search/rank-hits.ts";
import { entryText } from "../search-text.ts";
import type { PostgresDatabase } from "./database.ts";
import type { EntryPlace } from "./embeddings.ts";
import { PostgresEmbeddings } from "./embeddings.ts";
import { parseLines } from "./entry-rows.ts";
import { acceptedText, idKey, lookupText, userKey } from "./lookup-text.ts";
import { lexeme, wordPrefix } from "./search-rows.ts";

/** For each word, only this many of the newest entries that contain it are considered. */
const mostRows = 20_000;

/** A row of the search table. */
interface StoredWords {
  readonly session_uid: string;
  readonly seq: number;
  readonly role: string;
  readonly time: number;
  readonly length: number;
  readonly codes: Uint8Array;
}

/** The first row has only the statistics. */
interface FoundRow extends StoredWords {
  readonly held: readonly number[] | null;
  readonly entries: number | null;
  readonly holding: readonly number[] | null;
  readonly behind: number | null;
}

interface FoundEntry extends IndexedText {
  readonly uid: string;
  readonly seq: number;
  readonly role: string;
}

/** The line of a hit, and the session that contains it. */
interface HitLine {
  readonly session_uid: string;
  readonly seq: number;
  readonly line: string;
  readonly session_id: string;
  readonly detail: string;
}

/** Searches the words that are stored with each entry. */
export function postgresSearch(database: PostgresDatabase): SearchStore {
  const embeddings = new PostgresEmbeddings(database, (scope, places) => readTexts(database, scope, places));
  return {
    nearest: (scope, query, embedding) => embeddings.nearest(scope, query, embedding),
    unembedded: (scope, model, among) => embeddings.unembedded(scope, model, among),
    embed: (scope, model, embedded) => embeddings.embed(scope, model, embedded),
    async search(scope, given) {
      const limit = hitLimit(given.limit);
      const terms = queryTerms(given.text);
      const query = withFilters(given, terms);
      if (terms.terms.length === 0) return { hits: [], behind: 0 };
      const { offset = 0 } = query;
      const [first, ...rows] = await readFound(database, scope, query, terms);
      const statistics = { entries: first?.entries ?? 0, holding: first?.holding ?? [] };
      const hits = await new PostgresSearch(database, scope, query, terms).best(
        rows,
        statistics,
        offset + limit,
      );
      return { hits: hits.slice(offset), behind: first?.behind ?? 0 };
    },
  };
}

async function readFound(
  database: PostgresDatabase,
  scope: Scope,
  query: SearchQuery,
  { terms, all }: QueryTerms,
): Promise<FoundRow[]> {
  const user = userKey(scope.userId);
  const prefix = wordPrefix(user);
  const reach = query.reach?.agentIds === "all" ? undefined : query.reach;
  const everyWord = [...new Set(all.flat())].map((word) => lexeme(prefix, word));
  return database.read<FoundRow>(
    scope.userId ?? null,
    "SELECT * FROM skein.search($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    [
      ...[user, scope.agentId ?? null, query.sessionId === undefined ? null : idKey(query.sessionId)],
      ...[
        query.role === undefined ? null : acceptedText(query.role),
        reach?.treeOf == null ? null : lookupText(reach.treeOf),
      ],
      ...[reach?.descendants !== false, reach === undefined ? null : [...reach.agentIds]],
      ...[terms.map(({ word }) => lexeme(prefix, word)), terms.map(({ weight }) => weight)],
      ...[everyWord.length > 1 ? everyWord.join(" & ") : null],
      ...[wholeNumber(query.since ?? 0), wholeNumber(query.until ?? Number.MAX_SAFE_INTEGER)],
      ...[mostRows, mostScored],
    ],
  );
}

function wholeNumber(time: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(time)));
}

/** Ranks the entries that the database found, and reads the texts of the best ones. */
class PostgresSearch {
  readonly #database: PostgresDatabase;
  readonly #scope: Scope;
  readonly #query: SearchQuery;
  readonly #terms: QueryTerms;
  readonly #entries = new Map<string, FoundEntry>();

  constructor(database: PostgresDatabase, scope: Scope, query: SearchQuery, terms: QueryTerms) {
    this.#database = database;
    this.#scope = scope;
    this.#query = query;
    this.#terms = terms;
  }

  async best(rows: readonly FoundRow[], statistics: SearchStatistics, wanted: number): Promise<SearchHit[]> {
    const ranker = new Ranker(this.#terms, statistics);
    const oldestFirst = rows.toSorted((one, other) => one.time - other.time || one.seq - other.seq);
    const found = oldestFirst.map((row) => this.#entryOf(row, row.held ?? []));
    const { scored, sources } = scoreEntries(ranker, found);
    const ranked = rankEntries(ranker, scored, await this.#readAround(sources));
    const checker = new HitChecker<FoundEntry>(this.#query, this.#terms, (some) =>
      readTexts(this.#database, this.#scope, some),
    );
    return (await checker.check(ranked, statistics, wanted, true)) ?? [];
  }

  /** Later entries get higher numbers. */
  #entryOf(row: StoredWords, held: readonly number[]): FoundEntry {
    const name = `${row.session_uid} ${row.seq}`;
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    const { session_uid: uid, seq, role, time, length } = row;
    const codes = new Uint32Array(Uint8Array.from(row.codes).buffer);
    // PostgreSQL counts from 1.
    const terms = held.map((at) => at - 1);
    const entry = {
      row: this.#entries.size,
      uid,
      seq,
      position: seq,
      role,
      time,
      length,
      codes,
      held: terms,
    };
    this.#entries.set(name, entry);
    return entry;
  }

  /** Reads the neighbors of entries in their sessions. A neighbor that is not searched is `null`. */
  async #readAround(sources: readonly FoundEntry[]): Promise<Surroundings<FoundEntry>[]> {
    if (sources.length === 0) return [];
    const { userId = null } = this.#scope;
    const columns = "n.session_uid, n.seq, n.role, n.time, n.length, n.codes";
    const near = (order: string) => `
      (SELECT ${columns} FROM skein.entry_search AS n
       WHERE n.session_uid = h.uid AND n.user_id = $1 AND n.part = 0 AND n.codes IS NOT NULL AND n.seq ${order} LIMIT 2)`;
    const rows = await this.#database.read<StoredWords & { readonly near_seq: number }>(
      userId,
      `SELECT h.seq AS near_seq, x.* FROM unnest($2::text[], $3::integer[]) AS h (uid, seq),
       LATERAL (${near("< h.seq ORDER BY n.seq DESC")} UNION ALL ${near("> h.seq ORDER BY n.seq")}) AS x`,
      [userKey(userId), sources.map(({ uid }) => uid), sources.map(({ seq }) => seq)],
    );
    const around = Map.groupBy(rows, (row) => `${row.session_uid} ${row.near_seq}`);
    return sources.map((entry) => this.#surroundings(entry, around.get(`${entry.uid} ${entry.seq}`) ?? []));
  }

  #surroundings(entry: FoundEntry, near: readonly StoredWords[]): Surroundings<FoundEntry> {
    const { role, since = 0, until = Number.MAX_SAFE_INTEGER } = this.#query;
    const within = near
      .toSorted((one, other) => one.seq - other.seq)
      .map((row) => this.#entryOf(row, []))
      .map((each) => ({
        seq: each.seq,
        isSearched: each.time >= since && each.time <= until && (role ?? each.role) === each.role,
        each,
      }));
    const shown = (some: typeof within) => some.map(({ isSearched, each }) => (isSearched ? each : null));
    const [before = null, earlier = null] = shown(within.filter(({ seq }) => seq < entry.seq).toReversed());
    const [after = null, later = null] = shown(within.filter(({ seq }) => seq > entry.seq));
    return [earlier, before, entry, after, later];
  }
}

async function readTexts(
  database: PostgresDatabase,
  { userId = null }: { readonly userId?: string | null },
  some: readonly EntryPlace[],
): Promise<(CheckedText | null)[]> {
  if (some.length === 0) return [];
  const lines = await database.read<HitLine>(
    userId,
    `SELECT e.session_uid, e.seq, e.line, s.session_id, s.detail
     FROM unnest($2::text[], $3::integer[]) AS h (uid, seq)
     JOIN skein.entries AS e ON e.user_id = $1 AND e.session_uid = h.uid AND e.seq = h.seq
     JOIN skein.sessions AS s ON s.user_id = $1 AND s.uid = h.uid AND s.removed_at IS NULL`,
    [userKey(userId), some.map(({ uid }) => uid), some.map(({ seq }) => seq)],
  );
  const byName = new Map(lines.map((line) => [`${line.session_uid} ${line.seq}`, line]));
  return some.map(({ uid, seq }) => textOf(byName.get(`${uid} ${seq}`)));
}

function textOf(stored: HitLine | undefined): CheckedText | null {
  const [entry] = stored === undefined ? [] : parseLines([stored.line]);
  const said = entry === undefined ? null : entryText(entry);
  if (stored === undefined || entry === undefined || said === null) return null;
  const { key } = JSON.parse(stored.detail) as { readonly key: string };
  return { entry, text: said.text, sessionId: stored.session_id, key };
}
