/** Memory that is held under names, bounded for each name and for all of them together. */
export class HeldBytes {
  readonly #maxPerName: number;
  readonly #maxTotal: number;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(maxPerName: number, maxTotal = Number.POSITIVE_INFINITY) {
    this.#maxPerName = maxPerName;
    this.#maxTotal = maxTotal;
  }

  /** How many names hold any. */
  get size(): number {
    return this.#held.size;
  }

  /** `false`: they would be too many, and none of them is held. */
  take(name: string, bytes: number): boolean {
    const held = (this.#held.get(name) ?? 0) + bytes;
    if (held > this.#maxPerName || this.#total + bytes > this.#maxTotal) return false;
    if (held > 0) this.#held.set(name, held);
    this.#total += bytes;
    return true;
  }

  /** What was taken before is held no longer. */
  give(name: string, bytes: number): void {
    const left = (this.#held.get(name) ?? 0) - bytes;
    if (left > 0) this.#held.set(name, left);
    else this.#held.delete(name);
    this.#total -= bytes;
  }
}
