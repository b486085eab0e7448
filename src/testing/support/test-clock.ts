import type { Clock } from "../../core/clock.ts";

/** A clock with timers that advances only when a test advances it. */
export interface TestClock extends Clock {
  /** Advances the clock and fires due timers in order, each at its scheduled time. */
  advance(ms: number): Promise<void>;
  /** Calls `fire` once. The returned function cancels the timer. */
  setTimer(ms: number, fire: () => void): () => void;
  /** Rejects with the signal's reason when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** The number of pending timers. */
  readonly timers: number;
}

/**
 * Creates a clock for tests, by default at noon on January 1, 2026 (UTC).
 *
 * @example
 * ```ts
 * import { rehearsalModel, testClock } from "skein/testing";
 * const clock = testClock();
 * const model = rehearsalModel({ now: clock.now, sleep: clock.sleep });
 * await clock.advance(1000);
 * console.log(model.modelId, clock.now());
 * ```
 */
export function testClock(start = Date.UTC(2026, 0, 1, 12)): TestClock {
  const timers = new Map<number, Timer>();
  let time = start;
  let last = 0;
  const setTimer = (ms: number, fire: () => void) => {
    const id = ++last;
    timers.set(id, { at: time + Math.max(0, ms), fire });
    return () => {
      timers.delete(id);
    };
  };
  return {
    now: () => time,
    setTimer,
    sleep: (ms, signal) => sleepOn(setTimer, ms, signal),
    async advance(ms) {
      const until = time + ms;
      await settle();
      for (let next = nextDue(timers, until); next !== null; next = nextDue(timers, until)) {
        const [id, timer] = next;
        timers.delete(id);
        time = Math.max(time, timer.at);
        timer.fire();
        await settle();
      }
      time = until;
    },
    get timers() {
      return timers.size;
    },
  };
}

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

/** Lets code that a timer resumed run before the next timer fires. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Returns the earliest timer. If several are due at the same time, returns the one that was set first. */
function nextDue(timers: ReadonlyMap<number, Timer>, until: number): [number, Timer] | null {
  let found: [number, Timer] | null = null;
  for (const [id, timer] of timers) {
    if (timer.at <= until && (found === null || timer.at < found[1].at)) found = [id, timer];
  }
  return found;
}

function sleepOn(setTimer: TestClock["setTimer"], ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (signal?.aborted === true) {
    reject(signal.reason);
    return promise;
  }
  const onAbort = () => {
    cancel();
    reject(signal?.reason);
  };
  const cancel = setTimer(ms, () => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  });
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}
