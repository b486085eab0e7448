import type { Clock } from "../../core/clock.ts";

/** A clock that stands still until a test moves it, with the timers that hang on it. */
export interface TestClock extends Clock {
  /** Moves on, and rings what is due on the way, in its order; each sees the time that it was set for. */
  advance(ms: number): Promise<void>;
  /** Calls back once; what is returned takes it back. */
  setTimer(ms: number, ring: () => void): () => void;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** How many timers are set. */
  readonly timers: number;
}

/**
 * A clock for tests, at noon of the first of January 2026 unless told otherwise.
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
  const setTimer = (ms: number, ring: () => void) => {
    const id = ++last;
    timers.set(id, { at: time + Math.max(0, ms), ring });
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
      await settled();
      for (let next = nextDue(timers, until); next !== null; next = nextDue(timers, until)) {
        const [id, timer] = next;
        timers.delete(id);
        time = Math.max(time, timer.at);
        timer.ring();
        await settled();
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
  readonly ring: () => void;
}

/** What a timer woke goes on before the next one rings. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The earliest; of several at one time the one that was set first. */
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
    takeBack();
    reject(signal?.reason);
  };
  const takeBack = setTimer(ms, () => {
    signal?.removeEventListener("abort", onAbort);
    resolve();
  });
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise;
}
