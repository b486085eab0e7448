import type { Entry } from "../../core/entries.ts";
import { Slices } from "../../core/slices.ts";
import type { SearchHit, SearchQuery } from "../contract.ts";
import type { QueryTerms } from "./query-terms.ts";
import type { HitPlace, OwnScore, SearchStatistics } from "./rank.ts";
import { noScore, Ranker, settledHits } from "./rank.ts";
import type { RankedEntry } from "./rank-hits.ts";
import { entriesFor, fitsQuery, placeByShown, scoreText } from "./rank-hits.ts";
import { snippetOf } from "./snippet.ts";

/** An entry that was read, and its session. */
export interface CheckedText {
  readonly entry: Entry;
  readonly text: string;
  readonly sessionId: string;
  readonly key: string;
}

/** What a store knows about an entry before reading it. */
interface UnreadEntry {
  readonly row: number;
  readonly uid: string;
  readonly role: string;
  readonly time: number;
  readonly length: number;
}

/** Checking one word of a text takes about as long as parsing this many bytes. */
const checkCost = 64;

interface CheckedHit extends HitPlace {
  readonly hit: SearchHit;
}

interface ShownText extends CheckedText {
  /** The text as the caller sees it. `null` if it is hidden. */
  readonly shown: string | null;
}

/** Returns the entries in the same order. An entry that cannot be read is `null`. */
type ReadTexts<Found> = (found: readonly Found[]) => Promise<readonly (CheckedText | null)[]>;

/**
 * Reads the texts of hits, and ranks the hits by the text that the caller sees. The neighbors of a hit are read only if
 * parts of texts are hidden, because only then can their scores change.
 */
export class HitChecker<Found extends UnreadEntry> {
  readonly #query: SearchQuery;
  readonly #terms: QueryTerms;
  readonly #read: ReadTexts<Found>;
  readonly #texts = new Map<number, ShownText | null>();
  readonly #checked = new Map<number, CheckedHit | null>();
  readonly #slices = new Slices();

  constructor(query: SearchQuery, terms: QueryTerms, read: ReadTexts<Found>) {
    this.#query = query;
    this.#terms = terms;
    this.#read = read;
  }

  /**
   * Returns the best hits, or `null` if unread hits could rank above some of them. `found` must be sorted. `isLast`
   * means that no hits follow it.
   */
  async check(
    found: readonly RankedEntry<Found>[],
    statistics: SearchStatistics,
    wanted: number,
    isLast: boolean,
  ): Promise<SearchHit[] | null> {
    const ranker = new Ranker(this.#terms, statistics);
    for (let [from, count] = [0, wanted]; from < found.length; from += count, count *= 2) {
      const some = found.slice(from, from + count).filter(({ row }) => !this.#checked.has(row));
      await this.#readAll(some);
      for (const each of some) {
        this.#checked.set(each.row, this.#check(each, ranker));
        const turn = this.#slices.did(checkCost * each.entry.length);
        if (turn !== null) await turn;
      }
      const next = found[from + count];
      if (next === undefined) break;
      // Nothing is left to read if the hits so far rank above the next one.
      const best = this.#settled(next, wanted);
      if (best.length >= wanted) return best;
    }
    const best = this.#settled(isLast ? undefined : found.at(-1), wanted);
    return isLast || best.length >= wanted ? best : null;
  }

  #settled(next: HitPlace | undefined, wanted: number): SearchHit[] {
    const checked = [...this.#checked.values()].filter((hit) => hit !== null);
    const hits = settledHits(checked, next).map(({ hit }) => hit);
    const first = new Map(hits.toReversed().map((hit) => [hit.sessionId, hit]));
    const shown =
      this.#query.bySession === true ? hits.filter((hit) => first.get(hit.sessionId) === hit) : hits;
    return shown.slice(0, wanted);
  }

  #check(each: RankedEntry<Found>, ranker: Ranker): CheckedHit | null {
    const read = this.#texts.get(each.row) ?? null;
    if (read === null || read.shown === null || !fitsQuery(read.shown, this.#terms)) return null;
    const place = this.#query.shownText === undefined ? each : this.#placeByShown(each, ranker);
    if (place === null) return null;
    const { row, hasAllWords, score } = place;
    const { role, time } = each.entry;
    return { row, hasAllWords, score, hit: hitOf(read, read.shown, this.#terms, { role, time }) };
  }

  #placeByShown(each: RankedEntry<Found>, ranker: Ranker): HitPlace | null {
    return placeByShown(ranker, each, ({ entry, own }): OwnScore => {
      const read = this.#texts.get(entry.row) ?? null;
      if (read === null || read.shown === null) return noScore;
      return read.shown === read.text ? own : scoreText(ranker, this.#terms, read.shown, entry);
    });
  }

  async #readAll(some: readonly RankedEntry<Found>[]): Promise<void> {
    const { shownText } = this.#query;
    const needed = some.flatMap((each) => (shownText === undefined ? [each.entry] : entriesFor(each)));
    const unread = new Map(needed.map((entry) => [entry.row, entry]));
    for (const row of this.#texts.keys()) unread.delete(row);
    const entries = [...unread.values()];
    for (const [at, read] of (await this.#read(entries)).entries()) {
      const shown = read === null || shownText === undefined ? (read?.text ?? null) : shownText(read.entry);
      this.#texts.set(entries[at]?.row ?? 0, read === null ? null : { ...read, shown });
    }
  }
}

/** Returns a hit without looking for the query's words. `null` if it is hidden or does not match the query. */
export function fittingHit(
  query: SearchQuery,
  terms: QueryTerms,
  read: CheckedText,
  written: Pick<SearchHit, "role" | "time">,
): SearchHit | null {
  const shown = query.shownText === undefined ? read.text : query.shownText(read.entry);
  return shown === null || !fitsQuery(shown, terms) ? null : hitOf(read, shown, terms, written);
}

function hitOf(
  { sessionId, key, entry }: CheckedText,
  shown: string,
  terms: QueryTerms,
  { role, time }: Pick<SearchHit, "role" | "time">,
): SearchHit {
  return { sessionId, key, entryId: entry.id, role, time, snippet: snippetOf(shown, terms) };
}
