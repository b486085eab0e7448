import type { Scope, SearchHit, SearchQuery, SearchStore } from "../contract.ts";
import { hitLimit } from "../list-query.ts";
import type { HitPlace, IndexedHit } from "../search-rank.ts";
import { compareHits, placeOfShown, settledHits } from "../search-rank.ts";
import type { SearchTerms } from "../search-text.ts";
import { bm25, entryText, snippetOf, termsOf } from "../search-text.ts";
import type { PostgresDatabase } from "./database.ts";
import { parseLines } from "./entry-rows.ts";
import { idKey, lookupText, userKey } from "./lookup-text.ts";
import { anyOf, wordPrefix } from "./search-rows.ts";

/** Only this many of the newest hits are ranked. */
const mostRanked = 20_000;

interface FoundRow {
  readonly session_uid: string;
  readonly seq: number;
  readonly role: string;
  readonly time: number;
  readonly length: number;
  readonly counts: readonly number[];
  /** Number of entries that were searched. */
  readonly entries: number;
}

interface FoundEntry extends IndexedHit {
  readonly found: FoundRow;
}

interface RankedHit extends HitPlace {
  readonly hit: SearchHit;
}

interface RankedSearch {
  readonly query: SearchQuery;
  readonly terms: SearchTerms;
  readonly scoreOf: ReturnType<typeof bm25>;
}

/** The line of a hit, and the session that contains it. */
interface HitLine {
  readonly session_uid: string;
  readonly seq: number;
  readonly line: string;
  readonly session_id: string;
  readonly detail: string;
}

/** Searches the words that are stored with each entry, so a search is never outdated. */
export function postgresSearch(database: PostgresDatabase): SearchStore {
  return {
    async search(scope, query) {
      const limit = hitLimit(query.limit);
      const terms = termsOf(query.text);
      if (terms.any.length === 0) return { hits: [], behind: 0 };
      const { offset = 0 } = query;
      const rows = await readFound(database, scope, query, terms);
      const holding = terms.any.map((_, at) => rows.filter(({ counts }) => (counts[at] ?? 0) > 0).length);
      const scoreOf = bm25({ entries: rows[0]?.entries ?? 0, holding });
      const ranked = rankRows(rows, query, { query, terms, scoreOf });
      const read = (some: readonly FoundEntry[]) => readLines(database, scope, some);
      const hits = await bestHits(ranked, { query, terms, scoreOf }, offset + limit, read);
      return { hits: hits.slice(offset), behind: 0 };
    },
  };
}

async function readFound(
  database: PostgresDatabase,
  scope: Scope,
  query: SearchQuery,
  terms: SearchTerms,
): Promise<FoundRow[]> {
  const user = userKey(scope.userId);
  const prefix = wordPrefix(user);
  const reach = query.reach?.agentIds === "all" ? undefined : query.reach;
  return database.read<FoundRow>(
    scope.userId ?? null,
    "SELECT * FROM skein.search($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    [
      ...[user, scope.agentId ?? null, query.sessionId === undefined ? null : idKey(query.sessionId)],
      ...[query.role ?? null, reach?.treeOf == null ? null : lookupText(reach.treeOf)],
      ...[reach?.descendants !== false, reach === undefined ? null : [...reach.agentIds]],
      ...[anyOf(terms.any, prefix), terms.any.map(({ words }) => `${prefix}${words[0]}`)],
      ...[terms.any.map((term) => term.prefix), mostRanked],
    ],
  );
}

/** Rows are newest first. Entries outside the time range count for the statistics, but are no hits. */
function rankRows(
  rows: readonly FoundRow[],
  { since = Number.NEGATIVE_INFINITY, until = Number.POSITIVE_INFINITY }: SearchQuery,
  { terms, scoreOf }: RankedSearch,
): FoundEntry[] {
  const places = new Map(terms.any.map((term, at) => [term.words[0], at]));
  const needed = terms.all.flatMap(({ words }) => words.map((word) => places.get(word)));
  const ranked = rows.map((found, index) => ({
    row: rows.length - index,
    // An upper bound: whether the words are adjacent is checked in the text.
    hasAllWords: needed.every((at) => at === undefined || (found.counts[at] ?? 0) > 0),
    score: scoreOf(found.counts, found.length),
    counts: found.counts,
    length: found.length,
    found,
  }));
  return ranked.filter(({ found }) => found.time >= since && found.time <= until).sort(compareHits);
}

/** Reads the text of the best hits until no unread entry can outrank them. */
async function bestHits(
  ranked: readonly FoundEntry[],
  search: RankedSearch,
  wanted: number,
  read: (some: readonly FoundEntry[]) => Promise<HitLine[]>,
): Promise<SearchHit[]> {
  const checked: RankedHit[] = [];
  for (let from = 0, count = wanted; ; from += count, count *= 2) {
    const some = ranked.slice(from, from + count);
    const lines = new Map((await read(some)).map((line) => [`${line.session_uid} ${line.seq}`, line]));
    for (const each of some) {
      const line = lines.get(`${each.found.session_uid} ${each.found.seq}`);
      const hit = line === undefined ? null : hitOf(each, line, search);
      if (hit !== null) checked.push(hit);
    }
    const last = from + count >= ranked.length ? undefined : some.at(-1);
    const settled = settledHits(checked, last);
    if (last === undefined || settled.length >= wanted) return settled.slice(0, wanted).map(({ hit }) => hit);
  }
}

async function readLines(
  database: PostgresDatabase,
  { userId = null }: { readonly userId?: string | null },
  some: readonly FoundEntry[],
): Promise<HitLine[]> {
  if (some.length === 0) return [];
  return database.read<HitLine>(
    userId,
    `SELECT e.session_uid, e.seq, e.line, s.session_id, s.detail
     FROM unnest($2::text[], $3::integer[]) AS h (uid, seq)
     JOIN skein.entries AS e ON e.user_id = $1 AND e.session_uid = h.uid AND e.seq = h.seq
     JOIN skein.sessions AS s ON s.user_id = $1 AND s.uid = h.uid AND s.removed_at IS NULL`,
    [userKey(userId), some.map(({ found }) => found.session_uid), some.map(({ found }) => found.seq)],
  );
}

function hitOf(each: FoundEntry, stored: HitLine, search: RankedSearch): RankedHit | null {
  const { query, terms } = search;
  const [entry] = parseLines([stored.line]);
  const said = entry === undefined ? null : entryText(entry);
  if (entry === undefined || said === null) return null;
  const text = query.shownText === undefined ? said.text : query.shownText(entry);
  if (text === null) return null;
  const hasPhrases = terms.all.some(({ words }) => words.length > 1);
  const place = text === said.text && !hasPhrases ? each : placeOfShown(each, text, search);
  if (place === null) return null;
  const { key } = JSON.parse(stored.detail) as { readonly key: string };
  const { role, time } = each.found;
  const snippet = snippetOf(text, query.text);
  const { row, hasAllWords, score } = place;
  return {
    ...{ row, hasAllWords, score },
    hit: { sessionId: stored.session_id, key, entryId: entry.id, role, time, snippet },
  };
}
