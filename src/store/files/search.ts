import { isOutOfDescriptors, SkeinError } from "../../core/errors.ts";
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
import { hitLimit } from "../list-query.ts";
import type { CheckedText } from "../search/check-hits.ts";
import { fittingHit, HitChecker } from "../search/check-hits.ts";
import { queryTerms, withFilters } from "../search/query-terms.ts";
import { mostNearest, packVector, takeHits } from "../search/vectors.ts";
import { entryText } from "../search-text.ts";
import type { EmbeddingSearch } from "./index-embeddings.ts";
import type { FoundEntry, WordSearch } from "./index-search.ts";
import { wordSearch } from "./index-search.ts";
import type { SessionCatalog } from "./session-catalog.ts";
import type { SessionRow } from "./work-db.ts";
import { isVisible } from "./work-db.ts";

const noTerms = queryTerms("");

/** Searches using the index. The text of a hit is read from its log. */
export class FileSearch implements SearchStore {
  readonly #catalog: SessionCatalog;

  constructor(catalog: SessionCatalog) {
    this.#catalog = catalog;
  }

  async search(scope: Scope, given: SearchQuery): Promise<{ hits: readonly SearchHit[]; behind: number }> {
    const limit = hitLimit(given.limit);
    const terms = queryTerms(given.text);
    const query = withFilters(given, terms);
    const session = query.sessionId === undefined ? null : this.#sessionOf(scope, query.sessionId);
    if (terms.terms.length === 0 || (query.sessionId !== undefined && session === null))
      return { hits: [], behind: 0 };
    const { feed } = this.#catalog;
    const behind = await feed.catchUp();
    const { offset = 0 } = query;
    const search = wordSearch(scope, query, terms, session?.uid ?? null, offset + limit);
    return { hits: (await this.#bestHits(query, search)).slice(offset), behind };
  }

  async nearest(
    scope: Scope,
    given: SearchQuery,
    { model, vector }: Embedding,
  ): Promise<readonly SearchHit[]> {
    const terms = queryTerms(given.text);
    const query = withFilters(given, terms);
    const searched = this.#embeddings(scope, query, model);
    if (searched === null) return [];
    await this.#catalog.feed.catchUp();
    const { feed } = this.#catalog;
    const found = await feed.service.nearest({ ...searched, limit: mostNearest }, packVector(vector));
    const slices = new Slices();
    const read = async (each: FoundEntry) => {
      const text = await this.#read(each, slices);
      return text === null ? null : fittingHit(query, terms, text, each);
    };
    return takeHits(found, read, hitLimit(given.limit));
  }

  async unembedded(
    scope: Scope,
    model: string,
    { sessionId, limit }: { readonly sessionId?: string; readonly limit: number },
  ): Promise<readonly UnembeddedEntry[]> {
    const searched = this.#embeddings(scope, { text: "", ...present({ sessionId }) }, model);
    if (searched === null) return [];
    await this.#catalog.feed.catchUp();
    const found = await this.#catalog.feed.service.unembedded({ ...searched, limit });
    const slices = new Slices();
    const entries: UnembeddedEntry[] = [];
    for (const each of found) {
      const read = await this.#read(each, slices);
      if (read !== null) entries.push({ place: `${each.row} ${each.entryId}`, entry: read.entry });
    }
    return entries;
  }

  async embed(scope: Scope, model: string, embedded: readonly EmbeddedEntry[]): Promise<void> {
    const searched = this.#embeddings(scope, { text: "" }, model);
    const rows = embedded.map(({ place, vector }) => {
      const [row, entryId = ""] = place.split(" ");
      return { row: Number(row), entryId, vector: packVector(vector) };
    });
    if (searched !== null) await this.#catalog.feed.service.embed(searched, rows);
  }

  /** Returns `null` if the session does not exist. */
  #embeddings(scope: Scope, query: SearchQuery, model: string): EmbeddingSearch | null {
    const { sessionId } = query;
    const session = sessionId === undefined ? null : this.#sessionOf(scope, sessionId);
    if (sessionId !== undefined && session === null) return null;
    const { searched, since, until, limit } = wordSearch(scope, query, noTerms, session?.uid ?? null, 0);
    return { searched, since, until, limit, model };
  }

  #sessionOf(scope: Scope, sessionId: string): SessionRow | null {
    return this.#catalog.work.byId(scope.userId ?? null, sessionId);
  }

  /** Checks more hits until enough of them are settled. */
  async #bestHits(query: SearchQuery, search: WordSearch): Promise<readonly SearchHit[]> {
    const slices = new Slices();
    const checker = new HitChecker<FoundEntry>(query, search.terms, async (found) => {
      const texts: (CheckedText | null)[] = [];
      for (const each of found) texts.push(await this.#read(each, slices));
      return texts;
    });
    for (let most = 2 * search.limit; ; most *= 2) {
      const { found, statistics } = await this.#catalog.feed.service.search({ ...search, limit: most });
      const hits = await checker.check(found, statistics, search.limit, found.length < most);
      if (hits !== null) return hits;
    }
  }

  async #read({ uid, entryId }: FoundEntry, slices: Slices): Promise<CheckedText | null> {
    const row = this.#catalog.work.byUid(uid);
    if (row === null || !isVisible(row)) return null;
    const entry = await this.#catalog.entry(row, entryId).catch((error: unknown) => {
      // A lost or damaged log affects only its own hits. `doctor` reports it.
      if (error instanceof SkeinError && !isOutOfDescriptors(error)) return null;
      throw error;
    });
    const said = entry === null ? null : entryText(entry);
    if (entry === null || said === null) return null;
    const turn = slices.did(said.text.length);
    if (turn !== null) await turn;
    return { entry, text: said.text, sessionId: row.sessionId, key: row.key };
  }
}
