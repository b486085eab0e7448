import { within } from "../../core/within.ts";

/** How long what is closed may take to come to its end. */
export interface Grace {
  /** For runs to come to a written state. */
  readonly runsMs: number;
  /** For calls that are under way. */
  readonly callsMs: number;
}

export interface Closable {
  /** Asked once more meanwhile, it has the shorter time. */
  close(grace: Grace): Promise<void>;
}

/**
 * What serves now. Whoever asks gets the newest; what was replaced is closed in its own time, and whatever had it before
 * may finish with it.
 */
export class Current<T extends Closable> {
  #value: T;
  readonly #leaving = new Map<T, Promise<void>>();
  readonly #report: (error: unknown) => void;
  /** What is cut off after its grace takes a moment more to be closed. */
  readonly #unwindMs: number;

  constructor(first: T, report: (error: unknown) => void, unwindMs = 10_000) {
    this.#value = first;
    this.#unwindMs = unwindMs;
    this.#report = report;
  }

  get(): T {
    return this.#value;
  }

  /** How many were replaced and are not closed yet. */
  get leaving(): number {
    return this.#leaving.size;
  }

  /** From now on the next one serves; the old one has so long to come to its end. */
  swap(next: T, grace: Grace): void {
    const old = this.#value;
    this.#value = next;
    this.#retire(old, grace);
  }

  /** Closes what serves and all that went before, and waits for so long at the most. `false`: some are not closed. */
  async close(grace: Grace): Promise<boolean> {
    for (const each of [...this.#leaving.keys(), this.#value]) this.#retire(each, grace);
    const patienceMs = Math.max(grace.runsMs, grace.callsMs) + this.#unwindMs;
    return within(patienceMs, Promise.all(this.#leaving.values()));
  }

  #retire(old: T, grace: Grace): void {
    const report = this.#leaving.has(old) ? () => undefined : this.#report; // once
    const leaving: Promise<void> = old
      .close(grace)
      .catch(report)
      .finally(() => {
        if (this.#leaving.get(old) === leaving) this.#leaving.delete(old);
      });
    this.#leaving.set(old, leaving);
  }
}
