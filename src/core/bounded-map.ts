/** A map that drops the oldest entry when it is full. Overwriting a key does not change its position. */
export class BoundedMap<V> {
  readonly #values = new Map<string, V>();
  readonly #maxSize: number;
  readonly #onDrop: (value: V) => void;

  constructor(maxSize: number, onDrop: (value: V) => void = () => undefined) {
    this.#maxSize = maxSize;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    this.#values.set(key, value);
    for (const [oldest, dropped] of this.#values) {
      if (this.#values.size <= this.#maxSize) return;
      this.#values.delete(oldest);
      this.#onDrop(dropped);
    }
  }

  /** Removes an entry and returns it. */
  take(key: string): V | undefined {
    const value = this.#values.get(key);
    this.#values.delete(key);
    return value;
  }

  values(): V[] {
    return [...this.#values.values()];
  }

  clear(): void {
    this.#values.clear();
  }
}
