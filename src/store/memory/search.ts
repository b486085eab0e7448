import type { Entry } from "../../core/entries.ts";
import { present } from "../../core/present.ts";
import { Slices } from "../../core/slices.ts";
import type {
  EmbeddedEntry,
  Embedding,
  Scope,
  SearchHit,
  SearchQuery,
  SearchStore,
  UnembeddedEntry,
} from "../contract.ts";
import { hitLimit, reachFilter, userScope } from "../list-query.ts";
import { fittingHit } from "../search/check-hits.ts";
import type { QueryTerms } from "../search/query-terms.ts";
import { queryTerms, withFilters } from "../search/query-terms.ts";
import { Ranker } from "../search/rank.ts";
import type { IndexedText, Surroundings } from "../search/rank-hits.ts";
import { fitsQuery, rankEntries, scoreEntries } from "../search/rank-hits.ts";
import { snippetOf } from "../search/snippet.ts";
import type { PackedVector } from "../search/vectors.ts";
import { mostNearest, NearestItems, packVector, takeHits } from "../search/vectors.ts";
import type { WordCodes } from "../search/words.ts";
import { codeOf, codesOf, wordsOf } from "../search/words.ts";
import { entryText } from "../search-text.ts";
import type { MemorySession, SessionTable } from "./session-table.ts";
import { hasId } from "./session-table.ts";

/** Searches by reading every entry, which is fast enough for data that fits in memory. */
export class MemorySearch implements SearchStore {
  readonly #table: SessionTable;

  /** Entries never change, so an embedding is kept for as long as its entry exists. */
  readonly #embeddings = new WeakMap<Entry, { readonly model: string; readonly vector: PackedVector }>();

  constructor(table: SessionTable) {
    this.#table = table;
  }

  async nearest(
    scope: Scope,
    given: SearchQuery,
    { model, vector }: Embedding,
  ): Promise<readonly SearchHit[]> {
    const terms = queryTerms(given.text);
    const query = withFilters(given, terms);
    const { role, since = -Infinity, until = Infinity } = query;
    const nearest = new NearestItems<{ readonly session: MemorySession; readonly entry: Entry }>(
      packVector(vector),
      mostNearest,
    );
    for (const session of this.#searched(scope, query))
      for (const entry of [...session.tree.entries()].toReversed()) {
        const known = this.#embeddings.get(entry);
        const time = timeOf(entry);
        const isWithin =
          time >= since && time <= until && (role ?? knownText(entry)?.role) === knownText(entry)?.role;
        if (isWithin && known?.model === model) nearest.add({ session, entry }, known.vector);
      }
    const read = async ({ session, entry }: { readonly session: MemorySession; readonly entry: Entry }) => {
      const { sessionId, key } = session.record;
      const { role: by = "", text = "" } = knownText(entry) ?? {};
      return fittingHit(query, terms, { entry, text, sessionId, key }, { role: by, time: timeOf(entry) });
    };
    return takeHits(nearest.items, read, hitLimit(given.limit));
  }

  async unembedded(
    scope: Scope,
    model: string,
    { sessionId, limit }: { readonly sessionId?: string; readonly limit: number },
  ): Promise<readonly UnembeddedEntry[]> {
    const entries = this.#searched(scope, present({ sessionId })).flatMap(({ record, tree }) =>
      [...tree.entries()].map((entry) => ({ place: `${record.uid} ${entry.id}`, entry })),
    );
    return entries
      .filter(({ entry }) => knownText(entry) !== null && this.#embeddings.get(entry)?.model !== model)
      .toSorted((one, other) => timeOf(other.entry) - timeOf(one.entry))
      .slice(0, limit);
  }

  async embed(scope: Scope, model: string, embedded: readonly EmbeddedEntry[]): Promise<void> {
    const vectors = new Map(embedded.map(({ place, vector }) => [place, vector]));
    for (const { record, tree } of this.#searched(scope, {}))
      for (const entry of tree.entries()) {
        const vector = vectors.get(`${record.uid} ${entry.id}`);
        if (vector !== undefined) this.#embeddings.set(entry, { model, vector: packVector(vector) });
      }
  }

  #searched(scope: Scope, { reach, sessionId }: Pick<SearchQuery, "reach" | "sessionId">): MemorySession[] {
    const kin = [...this.#table.in(userScope(scope))].map(({ record }) => record);
    const isReached = reachFilter(reach, kin);
    return [...this.#table.in(scope)].filter(
      (session) => (sessionId === undefined || hasId(session, sessionId)) && isReached(session.record),
    );
  }

  async search(scope: Scope, given: SearchQuery): Promise<{ hits: readonly SearchHit[]; behind: number }> {
    const limit = hitLimit(given.limit);
    const terms = queryTerms(given.text);
    const query = withFilters(given, terms);
    if (terms.terms.length === 0) return { hits: [], behind: 0 };
    const slices = new Slices();
    const texts: SearchedText[] = [];
    for (const session of this.#searched(scope, query))
      texts.push(...(await textsIn(session, terms, query, slices)));
    const { offset = 0 } = query;
    const hits = firstPerSession(rankTexts(texts, terms, query), query);
    return { hits: hits.slice(offset, offset + limit).map((text) => hitOf(text, terms)), behind: 0 };
  }
}

interface SearchedText extends IndexedText {
  readonly session: MemorySession;
  readonly entryId: string;
  readonly role: string;
  /** `null` if the entry is hidden. */
  readonly text: string | null;
  /**
   * Returns the entry as the requester sees it. Masking is slow, so it is called only for texts that can affect the
   * result.
   */
  readonly show: () => SearchedText;
  /** The preceding entry in the session, even if that entry is not searched. */
  readonly before: string | null;
  readonly isSearched: boolean;
}

function rankTexts(texts: readonly SearchedText[], terms: QueryTerms, query: SearchQuery): SearchedText[] {
  const searched = texts.filter(({ isSearched }) => isSearched);
  const holding = terms.terms.map((_, at) => searched.filter(({ held }) => held.includes(at)).length);
  const ranker = new Ranker(terms, { entries: searched.length, holding });
  const placed = texts.toSorted((one, other) => one.time - other.time).map((text, row) => ({ ...text, row }));
  const isWithin = ({ isSearched, time }: SearchedText) =>
    isSearched && time >= (query.since ?? -Infinity) && time <= (query.until ?? Infinity);
  const { scored, sources } = scoreEntries(ranker, placed.filter(isWithin));
  const byId = new Map(placed.map((text) => [`${text.uid} ${text.entryId}`, text]));
  const after = new Map(placed.map((text) => [`${text.uid} ${text.before}`, text]));
  const previous = (text: SearchedText | null) => byId.get(`${text?.uid} ${text?.before}`) ?? null;
  const next = (text: SearchedText | null) => after.get(`${text?.uid} ${text?.entryId}`) ?? null;
  const within = (text: SearchedText | null) =>
    text !== null && isWithin(text) ? { ...text.show(), row: text.row } : null;
  const surroundings = sources.map((text): Surroundings<SearchedText> => {
    const [left, right] = [previous(text), next(text)];
    return [within(previous(left)), within(left), text, within(right), within(next(right))];
  });
  return rankEntries(ranker, scored, surroundings)
    .map(({ entry }) => entry)
    .filter(({ text }) => text !== null && fitsQuery(text, terms));
}

function firstPerSession(
  texts: readonly SearchedText[],
  { bySession }: SearchQuery,
): readonly SearchedText[] {
  if (bySession !== true) return texts;
  return [...new Map(texts.toReversed().map((text) => [text.session, text])).values()].toSorted(
    (one, other) => texts.indexOf(one) - texts.indexOf(other),
  );
}

/** The words of an entry as numbers. They are cached because entries never change. */
interface KnownText {
  readonly role: string;
  readonly text: string;
  readonly length: number;
  readonly codes: WordCodes;
  /** All distinct words and parts, including those that exceed the maximum number of codes. */
  readonly all: ReadonlySet<number>;
}

const known = new WeakMap<Entry, KnownText | null>();

function knownText(entry: Entry): KnownText | null {
  const made = known.get(entry);
  if (made !== undefined) return made;
  const said = entryText(entry);
  const text = said === null ? null : { role: said.role, ...textCodes(said.text) };
  const kept = text === null || text.length === 0 ? null : text;
  known.set(entry, kept);
  return kept;
}

function textCodes(text: string): Omit<KnownText, "role"> {
  const found = wordsOf(text);
  const all = new Set([...found.words, ...found.parts].map(codeOf));
  return { text, length: found.words.length, codes: codesOf(found), all };
}

async function textsIn(
  session: MemorySession,
  { terms }: QueryTerms,
  { role, shownText }: SearchQuery,
  slices: Slices,
): Promise<SearchedText[]> {
  const texts: SearchedText[] = [];
  const wanted = terms.map(({ word }) => codeOf(word));
  const scoring = terms.flatMap(({ word, related }) => [word, ...related]).map(codeOf);
  for (const entry of [...session.tree.entries()]) {
    const written = knownText(entry);
    if (written === null) continue;
    const held = (all: ReadonlySet<number>) => wanted.flatMap((code, at) => (all.has(code) ? [at] : []));
    const unmasked: SearchedText = {
      ...{
        row: 0,
        position: texts.length,
        uid: session.record.uid,
        session,
        entryId: entry.id,
        role: written.role,
      },
      ...{ time: timeOf(entry), text: written.text, length: written.length },
      ...{ codes: written.codes, held: held(written.all), before: texts.at(-1)?.entryId ?? null },
      isSearched: role === undefined || role === written.role,
      show: () => {
        const text = shownText === undefined ? written.text : shownText(entry);
        if (text === written.text) return unmasked;
        const { codes, all } = textCodes(text ?? "");
        return { ...unmasked, text, codes, held: held(all) };
      },
    };
    texts.push(scoring.some((code) => written.all.has(code)) ? unmasked.show() : unmasked);
    const turn = slices.did(written.text.length);
    if (turn !== null) await turn;
  }
  return texts;
}

function timeOf({ timestamp }: Entry): number {
  return Date.parse(timestamp) || 0;
}

function hitOf({ session, entryId, role, time, text }: SearchedText, terms: QueryTerms): SearchHit {
  const { sessionId, key } = session.record;
  return { sessionId, key, entryId, role, time, snippet: snippetOf(text ?? "", terms) };
}
