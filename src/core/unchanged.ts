/**
 * What was read before, for as long as a mark stays the same that moves with every change of where it was read. The mark is taken
 * before anything is read, so that what changes meanwhile is found the next time; without one nothing is remembered.
 */
export class Unchanged<T> {
  readonly #mark: () => string | null;
  readonly #most: number;
  /** The oldest first. Those of an earlier round are read again. */
  readonly #rows = new Map<string, { readonly value: T; readonly round: number }>();
  #taken: string | null = null;
  /** Counts the changes of the mark. */
  #round = 0;

  constructor(mark: () => string | null, most: number) {
    this.#mark = mark;
    this.#most = most;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** What is not there is looked for each time: strangers ask for what there is not. */
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
    const [oldest] = this.#rows.size < this.#most ? [] : this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
    this.#rows.set(name, { value, round });
    return value;
  }

  /** What was read last, even if it has changed since, for when nothing can be read. */
  lastRead(name: string): T | null {
    return this.#rows.get(name)?.value ?? null;
  }

  /** Forgets what is known to be wrong now. */
  forget(isWrong: (value: T) => boolean): void {
    for (const [name, { value }] of this.#rows) if (isWrong(value)) this.#rows.delete(name);
  }
}
