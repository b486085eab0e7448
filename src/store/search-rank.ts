import type { bm25, SearchTerms } from "./search-text.ts";
import { countOccurrences, wordsOf } from "./search-text.ts";

/** The order of search hits. Used by every store with an index. */

/** What a hit is sorted by. */
export interface HitPlace {
  /** Newer entries have higher numbers. */
  readonly row: number;
  readonly hasAllWords: boolean;
  /** Higher is better. */
  readonly score: number;
}

/** A hit as the index sees it. */
export interface IndexedHit extends HitPlace {
  /** Occurrences of each term. */
  readonly counts: readonly number[];
  /** Length in words. */
  readonly length: number;
}

/** Sorts entries with all words first, then by score, then newest first. */
export function compareHits(one: HitPlace, other: HitPlace): number {
  const isFirst = Number(other.hasAllWords) - Number(one.hasAllWords);
  return isFirst || other.score - one.score || other.row - one.row;
}

/** Ranks a hit by its visible words. Returns `null` if the match is hidden. */
export function placeOfShown(
  { row, hasAllWords, counts, length }: IndexedHit,
  shown: string,
  { terms, scoreOf }: { readonly terms: SearchTerms; readonly scoreOf: ReturnType<typeof bm25> },
): HitPlace | null {
  const words = wordsOf(shown);
  const visible = terms.any.map((term, at) => Math.min(counts[at] ?? 0, countOccurrences(words, term)));
  if (visible.every((count) => count === 0)) return null;
  const hasAll = hasAllWords && terms.all.every((term) => countOccurrences(words, term) > 0);
  return { row, hasAllWords: hasAll, score: scoreOf(visible, length) };
}

/**
 * Returns the hits that rank above all unchecked ones. The index order is an upper bound, because masked text can only
 * lower a hit's rank. `last` is the last checked hit, or `undefined` if none are left.
 */
export function settledHits<Hit extends HitPlace>(
  checked: readonly Hit[],
  last: HitPlace | undefined,
): Hit[] {
  const sorted = checked.toSorted(compareHits);
  return last === undefined ? sorted : sorted.filter((hit) => compareHits(hit, last) <= 0);
}
