import type { EventBus } from "../core/events.ts";
import type { ChildKeeper } from "../sessions/between/child-keeper.ts";

/** So often it is looked for what time alone makes due. */
const everyMs = 60_000;

/** Has children tidied away: soon after a run has ended, and now and then. */
export class Tidying {
  readonly #keeper: ChildKeeper;
  readonly #bus: EventBus;
  readonly #report: (error: unknown) => void;
  #stop: (() => void) | null = null;
  #underWay: Promise<void> | null = null;
  #mustRepeat = false;

  constructor(keeper: ChildKeeper, bus: EventBus, report: (error: unknown) => void) {
    this.#keeper = keeper;
    this.#bus = bus;
    this.#report = report;
  }

  start(): void {
    const timer = setInterval(() => this.#look(), everyMs).unref();
    const leave = this.#bus.subscribe(({ type }) => void (type === "run.ended" && this.#look()));
    this.#stop = () => {
      clearInterval(timer);
      leave();
    };
    this.#look();
  }

  /** What is under way is finished, and what the last runs have made due is done: it may be that nobody starts again. */
  async close(): Promise<void> {
    this.#stop?.();
    this.#stop = null;
    await this.#underWay;
  }

  #look(): void {
    this.#mustRepeat = true;
    this.#underWay ??= this.#work().finally(() => {
      this.#underWay = null;
    });
  }

  async #work(): Promise<void> {
    while (this.#mustRepeat) {
      this.#mustRepeat = false;
      await this.#keeper.tidy().catch(this.#report);
    }
  }
}
