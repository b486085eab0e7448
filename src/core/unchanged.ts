/**
 * Caches values while a mark is unchanged. Every write to their source changes the mark. The mark is read before the
 * value, so a concurrent change is detected on the next read. If the mark is `null`, nothing is cached.
 */
export class Unchanged<T> {
  readonly #mark: () => string | null;
  readonly #maxRows: number;
  /** Oldest first. Values from an earlier round are read again. */
  readonly #rows = new Map<string, { readonly value: T; readonly round: number }>();
  #taken: string | null = null;
  /** The number of times the mark has changed. */
  #round = 0;

  constructor(mark: () => string | null, maxRows: number) {
    this.#mark = mark;
    this.#maxRows = maxRows;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** A missing value is not cached, because unauthenticated callers can request any name. */
  get(name: string, read: () => T | null): T | null {
    const mark = this.#mark();
    if (mark === null) return read();
    if (mark !== this.#taken) this.#round += 1;
    this.#taken = mark;
    const round = this.#round;
    const known = this.#rows.get(name);
    if (known?.round === round) return known.value;
    const value = read();
    this.#rows.delete(name);
    if (value === null) return null;
    const [oldest] = this.#rows.size < this.#maxRows ? [] : this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
    this.#rows.set(name, { value, round });
    return value;
  }

  /** Returns the last value read, even if it is stale. Used when the source cannot be read. */
  lastRead(name: string): T | null {
    return this.#rows.get(name)?.value ?? null;
  }

  /** Drops values that are known to be wrong. */
  forget(isWrong: (value: T) => boolean): void {
    for (const [name, { value }] of this.#rows) if (isWrong(value)) this.#rows.delete(name);
  }
}
