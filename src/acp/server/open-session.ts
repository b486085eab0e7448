import { setImmediate } from "node:timers";
import type { LiveSession } from "./live-session.ts";

/** A session that an editor has open, with what was asked in it and is not answered. */
export class OpenSession {
  readonly live: LiveSession;
  /** Commands that run now. */
  readonly #commands = new Set<AbortController>();
  #unanswered = 0;

  constructor(live: LiveSession) {
    this.live = live;
  }

  get isAnswering(): boolean {
    return this.#unanswered > 0;
  }

  /** `answered` resolves when what it returns is on its way to the editor. */
  async answering<T>(act: (answered: Promise<void>) => Promise<T>): Promise<T> {
    const answered = Promise.withResolvers<void>();
    this.#unanswered += 1;
    try {
      return await act(answered.promise);
    } finally {
      this.#unanswered -= 1;
      setImmediate(answered.resolve);
    }
  }

  /**
   * Does a command until it is through or cancelled: `null` then, and whatever it comes to is nobody's. `isGone`: an editor
   * that goes away has cancelled nothing.
   */
  async command<T>(
    run: (signal: AbortSignal) => Promise<T>,
    asked: AbortSignal,
    isGone: () => boolean,
  ): Promise<T | null> {
    const one = new AbortController();
    const cancelled = Promise.withResolvers<null>();
    one.signal.addEventListener("abort", () => cancelled.resolve(null), { once: true });
    const cancel = () => {
      if (!isGone()) one.abort();
    };
    asked.addEventListener("abort", cancel, { once: true });
    if (asked.aborted) cancel();
    this.#commands.add(one);
    try {
      return await Promise.race([cancelled.promise, run(one.signal)]);
    } finally {
      asked.removeEventListener("abort", cancel);
      this.#commands.delete(one);
    }
  }

  /** Ends what was asked here; where nothing was, whatever the session is doing. */
  async cancel(): Promise<void> {
    if (this.#commands.size === 0) await this.live.cancel();
    else await this.cancelAsked();
  }

  /** Ends what was asked here, and nothing else: others may have set off what the session is doing. */
  async cancelAsked(): Promise<void> {
    for (const each of this.#commands) each.abort();
    await this.live.cancelAsked();
  }
}
