/** Payloads that are answered with again, so that their text is made once. */

const texts = new WeakMap<object, string>();
const repeated = new WeakSet<object>();

/** What was found so and stays so as long as a mark does. The same object each time: nobody changes what was answered. */
export class Repeated<T extends object> {
  readonly #most: number;
  readonly #known = new Map<string, { readonly mark: string; readonly payload: Promise<T> }>();

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * `mark`: taken before anything is read, so that what changes meanwhile is found the next time. Who asks while it is being
   * found waits for that; what could not be found is looked for again.
   */
  get(name: string, mark: string, find: () => Promise<T>): Promise<T> {
    const known = this.#known.get(name);
    if (known?.mark === mark) return known.payload;
    const payload = marked(find);
    this.#known.delete(name);
    this.#known.set(name, { mark, payload });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= this.#most) break;
      this.#known.delete(oldest);
    }
    payload.catch(() => {
      if (this.#known.get(name)?.payload === payload) this.#known.delete(name);
    });
    return payload;
  }
}

async function marked<T extends object>(find: () => Promise<T>): Promise<T> {
  const payload = await find();
  repeated.add(payload);
  return payload;
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
