/**
 * What was read before, for as long as a mark stays the same that moves with every change of where it was read. The mark is taken
 * before anything is read, so that what changes meanwhile is found the next time; without one nothing is remembered.
 */
export class Unchanged<T> {
  readonly #mark: () => string | null;
  readonly #most: number;
  readonly #rows = new Map<string, T>();
  #taken: string | null = null;

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
    if (mark !== this.#taken) this.#rows.clear();
    this.#taken = mark;
    const known = this.#rows.get(name);
    if (known !== undefined) return known;
    const found = read();
    if (found === null) return null;
    const [oldest] = this.#rows.size < this.#most ? [] : this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
    this.#rows.set(name, found);
    return found;
  }
}
