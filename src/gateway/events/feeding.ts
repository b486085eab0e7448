/** Calls back once, after so many milliseconds, without keeping the process alive. */
export type Schedule = (act: () => void, ms: number) => void;

const later: Schedule = (act, ms) => void setTimeout(act, ms).unref();

/** How often a full sink is looked at: none of them says when it has room. */
const lookMs = 20;
/** What it costs to send an event, where to pass one over costs 1. */
export const sendCost = 16;
const workAtOnce = 512 * sendCost;
const workEach = 64 * sendCost;

export interface Served {
  /** Of the work that it might do; none: it could do more. */
  readonly left: number;
  /** It waits for nothing more. */
  readonly isDone: boolean;
}

export interface Fed {
  feed(work: number): Served;
}

/** Serves readers that wait, in turn and in small parts, so that a long replay holds up nobody. */
export class Feeding<T extends Fed> {
  readonly #schedule: Schedule;
  readonly #waiting = new Set<T>();
  #isScheduled = false;

  constructor(schedule: Schedule = later) {
    this.#schedule = schedule;
  }

  add(reader: T): void {
    if (this.#waiting.has(reader)) return;
    this.#waiting.add(reader);
    this.#again(0);
  }

  delete(reader: T): void {
    this.#waiting.delete(reader);
  }

  #again(ms: number): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    this.#schedule(() => {
      this.#isScheduled = false;
      this.#again(this.#round() ? 0 : lookMs);
    }, ms);
  }

  /** Whether somebody could have done more. */
  #round(): boolean {
    let work = workAtOnce;
    let isHungry = false;
    for (const reader of [...this.#waiting]) {
      if (work <= 0) return true;
      if (!this.#waiting.delete(reader)) continue;
      const { left, isDone } = reader.feed(workEach);
      work -= workEach - left;
      if (isDone) continue;
      // To the end of the queue.
      this.#waiting.add(reader);
      isHungry ||= left <= 0;
    }
    return isHungry;
  }
}
