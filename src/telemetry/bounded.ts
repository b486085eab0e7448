/** Places that are never more than so many: what comes from outside may not fill the memory or a label. */

/** A map that lets the oldest go when it is full. Setting a key anew keeps its place. */
export class BoundedMap<V> {
  readonly #values = new Map<string, V>();
  readonly #most: number;
  readonly #letGo: (value: V, key: string) => void;

  constructor(most: number, letGo: (value: V, key: string) => void = () => undefined) {
    this.#most = most;
    this.#letGo = letGo;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    this.#values.set(key, value);
    for (const [oldest, gone] of this.#values) {
      if (this.#values.size <= this.#most) return;
      this.#values.delete(oldest);
      this.#letGo(gone, oldest);
    }
  }

  /** Takes it out, and gives it. */
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

export const otherName = "other";
const longestName = 100;

/** The first so many names are themselves, every further one is `other`. */
export class BoundedNames {
  readonly #known = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  of(name: string): string {
    if (this.#known.has(name)) return name;
    if (name.length > longestName || !name.isWellFormed() || this.#known.size >= this.#most) return otherName;
    this.#known.add(name);
    return name;
  }
}
