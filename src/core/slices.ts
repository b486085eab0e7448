/** Long work is split into slices. Between two slices, the event loop handles other events. */

/** The size of a slice, in bytes of processed text. */
export const sliceBytes = 512 * 1024;
/** A slice also ends after this many milliseconds. */
const sliceMs = 10;

/** Browsers have no `setImmediate`. They delay timers in background pages, but not messages. */
function afterTurn(go: () => void): void {
  if (typeof setImmediate === "function") {
    setImmediate(go);
    return;
  }
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    go();
  };
  port2.postMessage(null);
}

/** Pending work from all callers, in order. One slice runs per turn of the event loop. */
const waiting: (() => void)[] = [];

function nextTurn(): Promise<void> {
  return new Promise((go) => {
    if (waiting.push(go) === 1) afterTurn(goOn);
  });
}

function goOn(): void {
  waiting.shift()?.();
  if (waiting.length > 0) afterTurn(goOn);
}

/** Waits for one turn of the event loop, regardless of other pending work. */
function ownTurn(): Promise<void> {
  return new Promise((go) => afterTurn(go));
}

/** Divides one piece of work into slices. */
export class Slices {
  readonly #signal: AbortSignal | undefined;
  #next = nextTurn;
  #bytes = 0;
  #begun = performance.now();

  /** On abort, the work rejects with the signal's reason in the next turn of the event loop. */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /**
   * For work done under a lock. It does not queue behind other work, so callers that want the lock wait only for this
   * work.
   */
  static underLock(): Slices {
    const slices = new Slices();
    slices.#next = ownTurn;
    return slices;
  }

  /** Records progress. Returns `null` to continue immediately. Otherwise, the caller awaits the promise first. */
  did(bytes: number): Promise<void> | null {
    this.#bytes += bytes;
    if (this.#bytes < sliceBytes && performance.now() - this.#begun < sliceMs) return null;
    return this.turn();
  }

  /** Lets the event loop run. */
  async turn(): Promise<void> {
    await this.#next();
    this.#signal?.throwIfAborted();
    this.#bytes = 0;
    this.#begun = performance.now();
  }

  /** Runs divisible work to completion. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      const turn = this.did(step.value);
      if (turn !== null) await turn;
    }
  }
}

/** Divisible work. Yields the approximate size of each step in bytes, and returns the result. */
export type Steps<T> = Generator<number, T>;

/** Runs all steps without pausing, for short work. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
