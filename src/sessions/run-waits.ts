import type { HeldRun } from "../runs/contract.ts";
import type { App } from "./app.ts";

export type Waited<T> =
  | { readonly entered: true; readonly value: T }
  | { readonly entered: false; readonly cycle: readonly string[] };

/**
 * The waits of one run. Several calls of one message may wait at once: the slot is free from the first on, and asked for
 * again when the last is over.
 */
export class Waiting {
  readonly #app: { readonly runs: Pick<App["runs"], "wait">; readonly worker: Pick<App["worker"], "resume"> };
  readonly #held: HeldRun;
  readonly #signal: AbortSignal;
  #depth = 0;
  #isWaiting = false;
  #resuming: Promise<void> | null = null;

  constructor(
    app: { readonly runs: Pick<App["runs"], "wait">; readonly worker: Pick<App["worker"], "resume"> },
    held: HeldRun,
    signal: AbortSignal,
  ) {
    this.#app = app;
    this.#held = held;
    this.#signal = signal;
  }

  async while<T>(
    kind: "run" | "approval",
    runIds: readonly string[],
    wait: () => Promise<T>,
  ): Promise<Waited<T>> {
    // Looked at again behind each: the last wait may be over while this one is about to begin.
    while (this.#resuming !== null) await this.#resuming;
    this.#depth += 1;
    try {
      const entered = await this.#enter(kind, runIds);
      if (!entered.entered) return entered;
      this.#isWaiting = true;
      return { entered: true, value: await wait() };
    } finally {
      this.#depth -= 1;
      if (this.#depth === 0 && this.#isWaiting) await this.#resume();
    }
  }

  #enter(kind: "run" | "approval", runIds: readonly string[]) {
    return this.#app.runs.wait(this.#held, { for: kind, runIds });
  }

  async #resume(): Promise<void> {
    this.#isWaiting = false;
    const resuming = this.#app.worker.resume(this.#held, this.#signal).finally(() => {
      this.#resuming = null;
    });
    this.#resuming = resuming;
    await resuming;
  }
}
