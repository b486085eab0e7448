import { within } from "../../core/within.ts";

/** Counts calls, so that what they stand on is not closed under them. */
export class CallsUnderWay {
  #count = 0;
  #idle = Promise.withResolvers<void>();

  get count(): number {
    return this.#count;
  }

  async during<T>(act: () => Promise<T>): Promise<T> {
    this.#count++;
    try {
      return await act();
    } finally {
      this.#count--;
      if (this.#count === 0) {
        this.#idle.resolve();
        this.#idle = Promise.withResolvers();
      }
    }
  }

  /** Until none is under way, for so long at the most. */
  async idle(graceMs: number): Promise<void> {
    if (this.#count > 0) await within(graceMs, this.#idle.promise);
  }
}
