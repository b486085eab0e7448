/** One after the other, in the order of asking. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Whether somebody has the turn, or waits for it. */
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

/** One after the other for each name; different names do not wait for one another. */
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
