/** Shown that are answered with again, so that their text is made once. */

const texts = new WeakMap<object, string>();
const repeated = new WeakSet<object>();

interface Known<T> {
  readonly mark: string;
  readonly payload: Promise<T>;
  /** Characters of its text; 0 where they are not counted, or not yet. */
  length: number;
}

export interface PayloadCacheLimits {
  /** Shown. */
  readonly most: number;
  /** Characters of their texts, all together; left out: they are not counted. */
  readonly mostText?: number;
}

/** What was found so and stays so as long as a mark does. The same object each time: nobody changes what was answered. */
export class PayloadCache<T extends object> {
  readonly #limits: PayloadCacheLimits;
  readonly #known = new Map<string, Known<T>>();
  #length = 0;

  constructor(limits: PayloadCacheLimits) {
    this.#limits = limits;
  }

  /**
   * `mark`: taken before anything is read, so that what changes meanwhile is found the next time. Who asks while it is being
   * found waits for that; what could not be found is looked for again. `markNow` is asked once it is found: where it is another
   * one by then, nothing is remembered.
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

  /** What alone would take an eighth of the room is not remembered. */
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
    return false; // it cannot be said, and whoever asks next is told why
  }
}

/** `null`: it cannot be a text, which whoever sends it is told. */
function lengthOf(payload: object): number | null {
  try {
    return payloadText(payload).length;
  } catch {
    return null;
  }
}

/** A payload as JSON. */
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
