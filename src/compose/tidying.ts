import type { EventBus } from "../core/events.ts";
import type { ChildKeeper } from "../sessions/between/child-keeper.ts";

/** So often it is looked for what time alone makes due. */
const everyMs = 60_000;
/** Runs that end together are looked after together: a look goes through all children that are not tidied yet. */
const soonMs = 250;

/** Has children tidied away: soon after a run has ended, now and then, and once more before the end. */
export class Tidying {
  readonly #keeper: ChildKeeper;
  readonly #bus: EventBus;
  readonly #report: (error: unknown) => void;
  #stop: (() => void) | null = null;
  #soon: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();

  constructor(keeper: ChildKeeper, bus: EventBus, report: (error: unknown) => void) {
    this.#keeper = keeper;
    this.#bus = bus;
    this.#report = report;
  }

  start(): void {
    const timer = setInterval(() => this.#look(), everyMs).unref();
    const leave = this.#bus.subscribe(({ type }) => void (type === "run.ended" && this.#lookSoon()));
    this.#stop = () => {
      clearInterval(timer);
      leave();
    };
    this.#look();
  }

  /** What is under way, or was to come soon, is done first. */
  async close(): Promise<void> {
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = null;
    if (this.#soon !== null) this.#look();
    await this.#looking;
  }

  #lookSoon(): void {
    this.#soon ??= setTimeout(() => this.#look(), soonMs).unref();
  }

  #look(): void {
    if (this.#soon !== null) clearTimeout(this.#soon);
    this.#soon = null;
    this.#looking = this.#looking.then(() => this.#keeper.tidy()).catch(this.#report);
  }
}
