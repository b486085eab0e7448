import { Slices } from "../../core/slices.ts";
import type { Scope, SearchHit, SearchQuery, SearchStore } from "../contract.ts";
import { entryText } from "../entry-text.ts";
import { hitLimit } from "../limits.ts";
import { termsOf } from "../search-words.ts";
import { snippetOf } from "../snippet.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import { entryAt } from "./index-pages.ts";
import type { FoundEntry } from "./index-query.ts";
import { wordSearch } from "./index-query.ts";
import { isThere } from "./work-db.ts";

/** Search by the index; the text of a hit comes from its log. */
export class FileSearch implements SearchStore {
  readonly #catalogue: SessionCatalogue;

  constructor(catalogue: SessionCatalogue) {
    this.#catalogue = catalogue;
  }

  async search(scope: Scope, query: SearchQuery): Promise<{ hits: readonly SearchHit[]; behind: number }> {
    const limit = hitLimit(query.limit);
    const terms = termsOf(query.text);
    const session =
      query.sessionId === undefined ? null : this.#catalogue.work.byId(scope.userId ?? null, query.sessionId);
    if (terms.any.length === 0 || (query.sessionId !== undefined && session === null))
      return { hits: [], behind: 0 };
    const { feed } = this.#catalogue;
    const behind = await feed.catchUp();
    const found = await feed.service.search(wordSearch(scope, query, terms, session?.uid ?? null, limit));
    const slices = new Slices();
    const hits: SearchHit[] = [];
    for (const each of found) {
      const hit = await this.#hit(each, query.text, slices);
      if (hit !== null) hits.push(hit);
    }
    return { hits, behind };
  }

  async #hit(
    { uid, entryId, role, time }: FoundEntry,
    text: string,
    slices: Slices,
  ): Promise<SearchHit | null> {
    const row = this.#catalogue.work.byUid(uid);
    if (row === null || !isThere(row)) return null;
    const { index } = this.#catalogue;
    const entry = await this.#catalogue.using(row, (file) =>
      entryAt(file, entryId, index.place(uid, entryId)),
    );
    const said = entry === null ? null : entryText(entry);
    if (said === null) return null;
    const turn = slices.did(said.text.length);
    if (turn !== null) await turn;
    return {
      sessionId: row.sessionId,
      key: row.key,
      entryId,
      role,
      time,
      snippet: snippetOf(said.text, text),
    };
  }
}
