import { Slices } from "../../core/slices.ts";
import type { Scope, SearchHit, SearchQuery, SearchStore } from "../contract.ts";
import { entryText } from "../entry-text.ts";
import { hitLimit } from "../limits.ts";
import { kinOf, reaching } from "../reach.ts";
import { bm25 } from "../search-rank.ts";
import type { SearchTerm } from "../search-words.ts";
import { countOccurrences, termsOf, wordsOf } from "../search-words.ts";
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
    if (terms.any.length === 0) return { hits: [], behind: 0 };
    const isReached = reaching(query.reach, this.#table.in(kinOf(scope)));
    const slices = new Slices();
    const texts: SearchedText[] = [];
    for (const session of [...this.#table.in(scope)]) {
      const isSearched = query.sessionId === undefined || hasId(session, query.sessionId);
      if (isSearched && isReached(session)) texts.push(...(await textsIn(session, terms.any, query, slices)));
    }
    const holding = terms.any.map((_, at) => texts.filter(({ counts }) => (counts[at] ?? 0) > 0).length);
    const scoreOf = bm25({ entries: texts.length, holding });
    const found = texts
      .filter(({ counts, time }) => counts.some((count) => count > 0) && isWithin(query, time))
      .map((text) => ({
        ...text,
        hasAll: hasAll(text.words, terms.all),
        score: scoreOf(text.counts, text.length),
      }));
    found.sort((a, b) => Number(b.hasAll) - Number(a.hasAll) || b.score - a.score || b.time - a.time);
    return { hits: found.slice(0, limit).map((text) => hitOf(text, query.text)), behind: 0 };
  }
}

/** One entry, with how often each term occurs in it. */
interface SearchedText {
  readonly session: HeldSession;
  readonly entryId: string;
  readonly role: string;
  readonly time: number;
  readonly text: string;
  readonly words: readonly string[];
  readonly counts: readonly number[];
  /** Words as they were written, hidden ones too. */
  readonly length: number;
}

async function textsIn(
  session: HeldSession,
  terms: readonly SearchTerm[],
  { role, shownText }: SearchQuery,
  slices: Slices,
): Promise<SearchedText[]> {
  const texts: SearchedText[] = [];
  for (const entry of [...session.tree.entries()]) {
    const said = entryText(entry);
    if (said === null || (role !== undefined && role !== said.role)) continue;
    const written = wordsOf(said.text);
    if (written.length === 0) continue;
    const isHit = terms.some((term) => countOccurrences(written, term) > 0);
    // What a hit shows is asked for hits alone: to mask a text takes long.
    const text = shownText === undefined || !isHit ? said.text : (shownText(entry) ?? "");
    const words = text === said.text ? written : wordsOf(text);
    const counts = terms.map((term) => countOccurrences(words, term));
    const { length } = written;
    texts.push({
      session,
      entryId: entry.id,
      time: Date.parse(entry.timestamp),
      ...said,
      text,
      words,
      counts,
      length,
    });
    const turn = slices.did(said.text.length);
    if (turn !== null) await turn;
  }
  return texts;
}

function isWithin({ since, until }: SearchQuery, time: number): boolean {
  return (since === undefined || time >= since) && (until === undefined || time <= until);
}

function hasAll(words: readonly string[], terms: readonly SearchTerm[]): boolean {
  return terms.every((term) => countOccurrences(words, term) > 0);
}

function hitOf({ session, entryId, role, time, text }: SearchedText, query: string): SearchHit {
  const { id: sessionId } = session.tree.header;
  return { sessionId, key: session.key, entryId, role, time, snippet: snippetOf(text, query) };
}
