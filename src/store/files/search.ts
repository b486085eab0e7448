import { isOutOfDescriptors, SkeinError } from "../../core/errors.ts";
import { Slices } from "../../core/slices.ts";
import type { Scope, SearchHit, SearchQuery, SearchStore } from "../contract.ts";
import { hitLimit } from "../list-query.ts";
import type { HitPlace } from "../search-rank.ts";
import { placeOfShown, settledHits } from "../search-rank.ts";
import type { SearchTerms } from "../search-text.ts";
import { bm25, entryText, snippetOf, termsOf } from "../search-text.ts";
import { entryAt } from "./index-lists.ts";
import type { FoundEntry, WordSearch } from "./index-search.ts";
import { wordSearch } from "./index-search.ts";
import type { SessionCatalog } from "./session-catalog.ts";
import { isVisible } from "./work-db.ts";

/** Searches using the index. The text of a hit is read from its log. */
export class FileSearch implements SearchStore {
  readonly #catalog: SessionCatalog;

  constructor(catalog: SessionCatalog) {
    this.#catalog = catalog;
  }

  async search(scope: Scope, query: SearchQuery): Promise<{ hits: readonly SearchHit[]; behind: number }> {
    const limit = hitLimit(query.limit);
    const terms = termsOf(query.text);
    const session =
      query.sessionId === undefined ? null : this.#catalog.work.byId(scope.userId ?? null, query.sessionId);
    if (terms.any.length === 0 || (query.sessionId !== undefined && session === null))
      return { hits: [], behind: 0 };
    const { feed } = this.#catalog;
    const behind = await feed.catchUp();
    const { offset = 0 } = query;
    const search = wordSearch(scope, query, terms, session?.uid ?? null, offset + limit);
    return { hits: (await this.#bestHits({ query, terms, search })).slice(offset), behind };
  }

  /** Checks more hits until enough of them are settled. */
  async #bestHits(asked: AskedSearch): Promise<readonly SearchHit[]> {
    const { limit } = asked.search;
    const slices = new Slices();
    const known = new Map<number, RankedHit | null>();
    for (let most = limit; ; most *= 2) {
      const search = { ...asked.search, limit: most };
      const { found, statistics } = await this.#catalog.feed.service.search(search);
      const scoreOf = bm25(statistics);
      for (const each of found)
        if (!known.has(each.row)) known.set(each.row, await this.#hit(each, { ...asked, scoreOf }, slices));
      const hits = [...known.values()].filter((hit) => hit !== null);
      const last = found.length < most ? undefined : found.at(-1);
      const best = settledHits(hits, last);
      if (last === undefined || best.length >= limit) return best.slice(0, limit).map(({ hit }) => hit);
    }
  }

  async #hit(found: FoundEntry, asked: RankedSearch, slices: Slices): Promise<RankedHit | null> {
    const { uid, entryId, role, time } = found;
    const row = this.#catalog.work.byUid(uid);
    if (row === null || !isVisible(row)) return null;
    const { index } = this.#catalog;
    const read = this.#catalog.using(row, (file) => entryAt(file, entryId, index.place(uid, entryId)));
    const entry = await read.catch((error: unknown) => {
      // A lost or damaged log affects only its own hits. `doctor` reports it.
      if (error instanceof SkeinError && !isOutOfDescriptors(error)) return null;
      throw error;
    });
    const said = entry === null ? null : entryText(entry);
    if (entry === null || said === null) return null;
    const { query } = asked;
    const text = query.shownText === undefined ? said.text : query.shownText(entry);
    const place = text === null || text === said.text ? found : placeOfShown(found, text, asked);
    const turn = slices.did(said.text.length);
    if (turn !== null) await turn;
    if (text === null || place === null) return null;
    const snippet = snippetOf(text, query.text);
    return { ...place, hit: { sessionId: row.sessionId, key: row.key, entryId, role, time, snippet } };
  }
}

interface AskedSearch {
  readonly query: SearchQuery;
  readonly terms: SearchTerms;
  readonly search: WordSearch;
}

interface RankedSearch extends AskedSearch {
  readonly scoreOf: ReturnType<typeof bm25>;
}

interface RankedHit extends HitPlace {
  readonly hit: SearchHit;
}
