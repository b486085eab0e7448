import type { Scope, SearchHit, SearchQuery, SearchStore } from "../contract.ts";
import { entryText } from "../entry-text.ts";
import { hitLimit } from "../limits.ts";
import { kinOf, reaching } from "../reach.ts";
import type { SearchTerm } from "../search-words.ts";
import { termsOf, wordsOf } from "../search-words.ts";
import { snippetOf } from "../snippet.ts";
import type { HeldSession, SessionTable } from "./session-table.ts";
import { hasId } from "./session-table.ts";

/** Search by reading everything: right, and quick enough for what fits in memory. */
export class MemorySearch implements SearchStore {
  readonly #table: SessionTable;

  constructor(table: SessionTable) {
    this.#table = table;
  }

  async search(scope: Scope, query: SearchQuery): Promise<{ hits: readonly SearchHit[]; behind: number }> {
    const limit = hitLimit(query.limit);
    const terms = termsOf(query.text);
    if (terms.length === 0) return { hits: [], behind: 0 };
    const isReached = reaching(query.reach, this.#table.in(kinOf(scope)));
    const found = [...this.#table.in(scope)]
      .filter(isReached)
      .filter((session) => query.sessionId === undefined || hasId(session, query.sessionId))
      .flatMap((session) => hitsIn(session, query, terms));
    found.sort((a, b) => b.score - a.score || b.hit.time - a.hit.time);
    return { hits: found.slice(0, limit).map(({ hit }) => hit), behind: 0 };
  }
}

function hitsIn(
  session: HeldSession,
  query: SearchQuery,
  terms: readonly SearchTerm[],
): { hit: SearchHit; score: number }[] {
  const hits: { hit: SearchHit; score: number }[] = [];
  for (const entry of session.tree.entries()) {
    const said = entryText(entry);
    const time = Date.parse(entry.timestamp);
    if (said === null || (query.role !== undefined && said.role !== query.role)) continue;
    if (
      (query.since !== undefined && time < query.since) ||
      (query.until !== undefined && time > query.until)
    )
      continue;
    const words = wordsOf(said.text);
    const counts = terms.map((term) => occurrences(words, term));
    if (counts.includes(0)) continue;
    const score = counts.reduce((sum, count) => sum + count / (count + 1 + words.length / 100), 0);
    const { id: sessionId } = session.tree.header;
    const snippet = snippetOf(said.text, query.text);
    hits.push({
      hit: { sessionId, key: session.key, entryId: entry.id, role: said.role, time, snippet },
      score,
    });
  }
  return hits;
}

function occurrences(words: readonly string[], { words: wanted, prefix }: SearchTerm): number {
  let count = 0;
  for (let start = 0; start + wanted.length <= words.length; start++) {
    const fits = wanted.every((word, offset) => {
      const found = words[start + offset] ?? "";
      return prefix && offset === wanted.length - 1 ? found.startsWith(word) : found === word;
    });
    if (fits) count += 1;
  }
  return count;
}
