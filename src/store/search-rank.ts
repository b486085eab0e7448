/** How search hits are ranked, the same in every store. */

/** What the entries that an asker may see have of a query. Entries of other sessions must not count: the order would tell of them. */
export interface SearchStatistics {
  /** Entries that the asker may see. */
  readonly entries: number;
  /** How many of them hold each term of the query. */
  readonly holding: readonly number[];
}

/** Words of an entry of ordinary length. It is fixed: a mean would tell how long the entries are that an asker cannot see. */
const ordinaryLength = 100;
const saturation = 1.2;
const lengthShare = 0.75;

/** BM25 of an entry, by how often each term occurs in it and by its length in words. Higher is better. */
export function bm25({
  entries,
  holding,
}: SearchStatistics): (counts: readonly number[], length: number) => number {
  const weights = holding.map((count) => Math.log(1 + (Math.max(0, entries - count) + 0.5) / (count + 0.5)));
  return (counts, length) => {
    const norm = saturation * (1 - lengthShare + (lengthShare * length) / ordinaryLength);
    let score = 0;
    for (const [term, weight] of weights.entries()) {
      const count = counts[term] ?? 0;
      score += (weight * count * (saturation + 1)) / (count + norm);
    }
    return score;
  };
}
