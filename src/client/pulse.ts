import type { Timing } from "./backoff.ts";

/** Notices a socket that is dead and was never closed, as after a machine has slept: no page hears of that by itself. */

const quietMs = 30_000;
/** As long as a large answer may be on its way. */
const answerMs = 30_000;

/** Something that every gateway answers, whatever the token may: the answer shows that it is there. */
export const pulseFrame = JSON.stringify({
  type: "req",
  id: "pulse",
  method: "sessions.unsubscribe",
  params: { subscriptionId: "pulse" },
});

export interface PulseActs {
  ask(): void;
  /** Nothing was heard since it was asked. */
  dead(): void;
}

export class Pulse {
  readonly #timing: Timing;
  readonly #acts: PulseActs;
  #takeBack: () => void;
  #wasHeard = false;

  constructor(timing: Timing, acts: PulseActs) {
    this.#timing = timing;
    this.#acts = acts;
    this.#takeBack = this.#wait(quietMs, false);
  }

  /** Called with every frame, so it does no more than this. */
  heard(): void {
    this.#wasHeard = true;
  }

  stop(): void {
    this.#takeBack();
  }

  #wait(ms: number, wasAsked: boolean): () => void {
    this.#wasHeard = false;
    return this.#timing.setTimer(ms, () => {
      if (!this.#wasHeard && wasAsked) {
        this.#acts.dead();
        return;
      }
      const asks = !this.#wasHeard;
      if (asks) this.#acts.ask();
      this.#takeBack = this.#wait(asks ? answerMs : quietMs, asks);
    });
  }
}
