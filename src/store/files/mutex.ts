/** One after the other, in the order of asking. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#last.then(act, act);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
