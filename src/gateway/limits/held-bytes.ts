/** Bytes that are held at once under a name, never more than so many. */
export class HeldBytes {
  readonly #most: number;
  readonly #held = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** How many names hold any. */
  get size(): number {
    return this.#held.size;
  }

  /** `false`: they would be too many, and none of them is held. */
  take(name: string, bytes: number): boolean {
    const held = (this.#held.get(name) ?? 0) + bytes;
    if (held > this.#most) return false;
    if (held > 0) this.#held.set(name, held);
    return true;
  }

  /** What was taken before is held no longer. */
  give(name: string, bytes: number): void {
    const left = (this.#held.get(name) ?? 0) - bytes;
    if (left > 0) this.#held.set(name, left);
    else this.#held.delete(name);
  }
}
