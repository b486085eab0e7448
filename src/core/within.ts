/**
 * How long something may take, which can be shortened while it is waited for. Holds the process meanwhile: who hangs in
 * something that keeps nothing alive would end it before the rest is closed.
 */
export class TimeLeft {
  readonly #late = Promise.withResolvers<false>();
  #timer: NodeJS.Timeout | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(ms: number) {
    this.shorten(ms);
  }

  /** So long from now, unless less is left already. */
  shorten(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#late.resolve(false), ms);
  }

  /** What work throws in time is thrown. `false`: it was not done in time, and goes on. Once. */
  async wait(work: Promise<unknown>): Promise<boolean> {
    try {
      return await Promise.race([work.then(() => true), this.#late.promise]);
    } finally {
      this.#at = Number.NEGATIVE_INFINITY;
      clearTimeout(this.#timer);
    }
  }
}

/** Waits for work, for so long at the most; as `TimeLeft` does. */
export function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  return new TimeLeft(ms).wait(work);
}
