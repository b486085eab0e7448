/** A seeded random source. The same seed produces the same transcript everywhere. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed ^ 0x5bd1e995) >>> 0;
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  /** Returns `true` about once in `times` calls. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[this.below(from.length)] as T;
  }
}
