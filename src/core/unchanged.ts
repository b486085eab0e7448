/**
 * Caches values while a mark is unchanged. Every write to their source changes the mark. The mark is read before the
 * values, so a concurrent change is detected on the next read. If the mark is `null`, nothing is cached.
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

  async get(name: string, read: () => Promise<T | null>): Promise<T | null> {
    const found = await this.getEach([name], async () => {
      const value = await read();
      return value === null ? new Map() : new Map([[name, value]]);
    });
    return found.get(name) ?? null;
  }

  /**
   * Like `get`, but reads all names that are not cached in one call. A missing value is not cached, because
   * unauthenticated callers can request any name.
   */
  async getEach(
    names: readonly string[],
    read: (names: readonly string[]) => Promise<ReadonlyMap<string, T>>,
  ): Promise<ReadonlyMap<string, T>> {
    const round = this.#startRound();
    const found = new Map<string, T>();
    const unread: string[] = [];
    for (const name of names) {
      const row = this.#rows.get(name);
      if (row !== undefined && row.round === round) found.set(name, row.value);
      else unread.push(name);
    }
    if (unread.length === 0) return found;
    const values = await read(unread);
    for (const name of unread) {
      const value = values.get(name);
      if (value !== undefined) found.set(name, value);
      if (round !== null) this.#keep(name, value, round);
    }
    return found;
  }

  /** Returns the last value read, even if it is stale. Used when the source cannot be read. */
  lastRead(name: string): T | null {
    return this.#rows.get(name)?.value ?? null;
  }

  /** Drops values that are known to be wrong. */
  forget(isWrong: (value: T) => boolean): void {
    for (const [name, { value }] of this.#rows) if (isWrong(value)) this.#rows.delete(name);
  }

  /** Returns `null` if nothing can be cached now. */
  #startRound(): number | null {
    const mark = this.#mark();
    if (mark === null) return null;
    if (mark !== this.#taken) this.#round += 1;
    this.#taken = mark;
    return this.#round;
  }

  #keep(name: string, value: T | undefined, round: number): void {
    // A later read has already ended.
    if ((this.#rows.get(name)?.round ?? 0) > round) return;
    this.#rows.delete(name);
    if (value === undefined) return;
    const [oldest] = this.#rows.size < this.#maxRows ? [] : this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
    this.#rows.set(name, { value, round });
  }
}
