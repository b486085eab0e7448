import { TimeLeft } from "../../core/within.ts";

/** Counts calls, so that what they stand on is not closed under them. */
export class CallsUnderWay {
  #count = 0;
  #idle = Promise.withResolvers<void>();
  #waiting: { readonly left: TimeLeft; readonly idle: Promise<unknown> } | null = null;

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

  /** Until none is under way, for so long at the most; asked once more meanwhile, for the shorter time. */
  async idle(graceMs: number): Promise<void> {
    if (this.#count === 0) return;
    this.#waiting?.left.shorten(graceMs);
    this.#waiting ??= this.#wait(new TimeLeft(graceMs));
    await this.#waiting.idle;
  }

  #wait(left: TimeLeft) {
    const idle = left.wait(this.#idle.promise).finally(() => {
      this.#waiting = null;
    });
    return { left, idle };
  }
}
