/** Runs functions one after the other, in call order. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Whether the lock is held or has waiters. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  run<T>(act: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const result = this.#last.then(act, act);
    const done = () => {
      this.#waiting -= 1;
    };
    this.#last = result.then(done, done);
    return result;
  }
}

/** Runs functions with the same name one after the other. Functions with different names do not wait for each other. */
export class KeyedMutex {
  readonly #queues = new Map<string, { mutex: Mutex; waiting: number }>();

  async run<T>(name: string, act: () => Promise<T>): Promise<T> {
    const queue = this.#queues.get(name) ?? { mutex: new Mutex(), waiting: 0 };
    this.#queues.set(name, queue);
    queue.waiting += 1;
    try {
      return await queue.mutex.run(act);
    } finally {
      queue.waiting -= 1;
      if (queue.waiting === 0) this.#queues.delete(name);
    }
  }
}

/**
 * A timeout that can be shortened while a caller waits for it. Its timer keeps the process alive so that Node does not
 * exit while a close hangs.
 */
export class TimeLeft {
  readonly #late = Promise.withResolvers<false>();
  #timer: NodeJS.Timeout | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(ms: number) {
    this.shorten(ms);
  }

  /** Does nothing if less time than this remains. */
  shorten(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#at) return;
    this.#at = at;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#late.resolve(false), ms);
  }

  /**
   * Can be called only once. Returns `false` if the work did not finish in time, in which case the work continues.
   * Rejects if the work rejects in time.
   */
  async wait(work: Promise<unknown>): Promise<boolean> {
    try {
      return await Promise.race([work.then(() => true), this.#late.promise]);
    } finally {
      this.#at = Number.NEGATIVE_INFINITY;
      clearTimeout(this.#timer);
    }
  }
}

/** Waits for work with a timeout, like `TimeLeft`. */
export function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  return new TimeLeft(ms).wait(work);
}

/** Schedules a function without keeping the process alive. Returns a function that cancels it. */
export type Later = (ms: number, act: () => void) => () => void;

export const later: Later = (ms, act) => {
  const timer = setTimeout(act, ms).unref();
  return () => clearTimeout(timer);
};

/** Resolves after `ms`. Rejects with the signal's reason as soon as the signal is aborted. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export const sleep: Sleep = (ms, signal) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  return unlessAborted(promise, signal).finally(() => clearTimeout(timer));
};

/** Settles like the promise, or rejects with the signal's reason if the signal is aborted first. */
export function unlessAborted<T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    const settle = (settled: () => void) => {
      signal.removeEventListener("abort", onAbort);
      settled();
    };
    promise.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** Maps items with limited concurrency. The results are in the order of the items. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  atATime: number,
  act: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = items.entries();
  const work = async () => {
    // All workers share one iterator, so the next free worker takes the next item.
    for (const [index, item] of waiting) results[index] = await act(item);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, work));
  return results;
}
