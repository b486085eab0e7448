import type { SearchHit } from "../contract.ts";

/**
 * Embeddings as a store keeps them: the direction of a vector with one byte per dimension. This is a quarter of the
 * size of floats, and precise enough to find the nearest of many texts.
 */
export type PackedVector = Int8Array;

const mostPerDimension = 127;

/** Returns an empty vector if every component is 0 or if one is not finite. */
export function packVector(vector: readonly number[]): PackedVector {
  const longest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (!Number.isFinite(longest) || longest === 0) return new Int8Array();
  return Int8Array.from(vector, (value) => Math.round((value / longest) * mostPerDimension));
}

/** Reads a packed vector from the bytes of a database. */
export function unpackBytes({ buffer, byteOffset, byteLength }: Uint8Array): PackedVector {
  return new Int8Array(buffer, byteOffset, byteLength);
}

export function packedBytes({ buffer, byteOffset, byteLength }: PackedVector): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The sign of each dimension. The more signs two vectors share, the nearer they are. */
export function signsOf(packed: PackedVector): string {
  return Array.from(packed, (value) => (value < 0 ? "0" : "1")).join("");
}

/** The cosine of the angle between two vectors. `null` if they have different dimensions or one is empty. */
function similarityOf(one: PackedVector, other: PackedVector): number | null {
  if (one.length === 0 || one.length !== other.length) return null;
  let [product, ones, others] = [0, 0, 0];
  for (let at = 0; at < one.length; at++) {
    const [left, right] = [one[at] as number, other[at] as number];
    product += left * right;
    ones += left * left;
    others += right * right;
  }
  return product / Math.sqrt(ones * others);
}

/** Collects the items that are nearest to a vector. */
export class NearestItems<Item> {
  readonly #vector: PackedVector;
  readonly #most: number;
  readonly #near: { readonly item: Item; readonly similarity: number }[] = [];

  constructor(vector: PackedVector, most: number) {
    this.#vector = vector;
    this.#most = most;
  }

  add(item: Item, vector: PackedVector): void {
    const similarity = similarityOf(this.#vector, vector);
    if (similarity === null) return;
    const farthest = this.#near.at(-1)?.similarity ?? Number.NEGATIVE_INFINITY;
    if (this.#near.length >= this.#most && similarity <= farthest) return;
    // Among equally near items, the one that was added first stays first.
    const at = this.#near.findLastIndex((each) => each.similarity >= similarity) + 1;
    this.#near.splice(at, 0, { item, similarity });
    this.#near.splice(this.#most);
  }

  /** The nearest item first. */
  get items(): Item[] {
    return this.#near.map(({ item }) => item);
  }
}

/** Twice as many as a query can return, because some of the entries might be hidden. */
export const mostNearest = 200;

/** Reads hits in order until there are enough. `read` returns `null` for an entry that is not a hit. */
export async function takeHits<Found>(
  found: readonly Found[],
  read: (each: Found) => Promise<SearchHit | null>,
  limit: number,
): Promise<SearchHit[]> {
  const hits: SearchHit[] = [];
  for (const each of found) {
    if (hits.length >= limit) break;
    const hit = await read(each);
    if (hit !== null) hits.push(hit);
  }
  return hits;
}

/** Reduces the influence of the first places. The usual constant for merging by reciprocal rank. */
const smoothing = 60;

/** Merges two rankings by reciprocal rank. A hit in both comes before hits that have the same positions in only one. */
export function mergeByRank(words: readonly SearchHit[], meanings: readonly SearchHit[]): SearchHit[] {
  const merged = new Map<string, { readonly hit: SearchHit; score: number }>();
  for (const hits of [words, meanings])
    for (const [at, hit] of hits.entries()) {
      const name = `${hit.sessionId} ${hit.entryId}`;
      const found = merged.get(name) ?? { hit, score: 0 };
      found.score += 1 / (smoothing + at + 1);
      merged.set(name, found);
    }
  return [...merged.values()].sort((one, other) => other.score - one.score).map(({ hit }) => hit);
}
