/** A table of bounded size: the one that was set longest ago makes room. */
export class Latest<Key, Value> {
  readonly #most: number;
  readonly #rows = new Map<Key, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#rows.size;
  }

  get(key: Key): Value | undefined {
    return this.#rows.get(key);
  }

  set(key: Key, value: Value): void {
    this.#rows.delete(key);
    this.#rows.set(key, value);
    if (this.#rows.size <= this.#most) return;
    const [oldest] = this.#rows.keys();
    this.#rows.delete(oldest as Key);
  }
}
