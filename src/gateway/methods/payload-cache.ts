/** Caches results that are sent repeatedly, so that each is encoded only once. */

const texts = new WeakMap<object, string>();
const repeated = new WeakSet<object>();

interface Known<T> {
  readonly mark: string;
  readonly payload: Promise<T>;
  /** The length of the payload's JSON in characters, or 0 if it has not been measured yet. */
  length: number;
}

export interface PayloadCacheLimits {
  /** The maximum number of payloads. */
  readonly most: number;
  /** The maximum total length of the JSON in characters. Unlimited if absent. */
  readonly mostText?: number;
}

/** Caches each payload as long as its mark stays the same. Callers share the object and must not change it. */
export class PayloadCache<T extends object> {
  readonly #limits: PayloadCacheLimits;
  readonly #known = new Map<string, Known<T>>();
  #length = 0;

  constructor(limits: PayloadCacheLimits) {
    this.#limits = limits;
  }

  /**
   * `mark` is taken before the read so that a change during the read invalidates the entry. Concurrent callers share
   * one read. A failed read is not cached. `markNow` is called after the read. If its result differs from `mark`,
   * nothing is cached.
   */
  get(name: string, mark: string, find: () => Promise<T>, markNow = () => mark): Promise<T> {
    const known = this.#known.get(name);
    if (known?.mark === mark) return known.payload;
    const payload = marked(find);
    this.#drop(name);
    const entry: Known<T> = { mark, payload, length: 0 };
    this.#known.set(name, entry);
    this.#bound();
    payload.then(
      (found) => (isStill(mark, markNow) ? this.#weigh(name, entry, found) : this.#dropThis(name, entry)),
      () => this.#dropThis(name, entry),
    );
    return payload;
  }

  /** A payload that would take up more than an eighth of the cache is not cached. */
  #weigh(name: string, entry: Known<T>, payload: T): void {
    const { mostText } = this.#limits;
    if (mostText === undefined || this.#known.get(name) !== entry) return;
    const length = lengthOf(payload);
    if (length === null || length > mostText / 8) {
      this.#drop(name);
      return;
    }
    entry.length = length;
    this.#length += length;
    this.#bound();
  }

  #bound(): void {
    const { most, mostText = Number.POSITIVE_INFINITY } = this.#limits;
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= most && this.#length <= mostText) break;
      this.#drop(oldest);
    }
  }

  #dropThis(name: string, entry: Known<T>): void {
    if (this.#known.get(name) === entry) this.#drop(name);
  }

  #drop(name: string): void {
    this.#length -= this.#known.get(name)?.length ?? 0;
    this.#known.delete(name);
  }
}

async function marked<T extends object>(find: () => Promise<T>): Promise<T> {
  const payload = await find();
  repeated.add(payload);
  return payload;
}

function isStill(mark: string, markNow: () => string): boolean {
  try {
    return markNow() === mark;
  } catch {
    return false; // The mark cannot be read. The next caller gets the error.
  }
}

/** Returns `null` if the payload cannot be encoded. Sending it then reports the error. */
function lengthOf(payload: object): number | null {
  try {
    return payloadText(payload).length;
  } catch {
    return null;
  }
}

/** Encodes a payload as JSON. */
export function payloadText(payload: unknown): string {
  if (typeof payload !== "object" || payload === null || !repeated.has(payload)) {
    return JSON.stringify(payload) ?? "null";
  }
  const known = texts.get(payload);
  if (known !== undefined) return known;
  const text = JSON.stringify(payload);
  texts.set(payload, text);
  return text;
}
