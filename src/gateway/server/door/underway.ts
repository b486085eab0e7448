import { SkeinError } from "../../../core/errors.ts";

/** One request that is under way. */
export interface Task {
  readonly signal: AbortSignal;
  /** From now on it does nothing but wait for something to happen, and ends as soon as the server stops. */
  wait(): void;
  /** Nobody waits for it any more. */
  leave(): void;
  /** It is answered, or given up. */
  done(): void;
}

interface Row {
  readonly controller: AbortController;
  isLong: boolean;
}

const advice = "Ask again in a while; what was begun may have been done";

/** Every request that is under way, so that a server can wait for them, and end them. */
export class Underway {
  readonly #rows = new Set<Row>();
  readonly #waiting: (() => void)[] = [];
  #isStopping = false;

  get size(): number {
    return this.#rows.size;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** `isLong`: it waits from the beginning. */
  begin(isLong: boolean): Task {
    const row = { controller: new AbortController(), isLong };
    this.#rows.add(row);
    return {
      signal: row.controller.signal,
      wait: () => this.#wait(row),
      leave: () => row.controller.abort(over("Nobody waits for the answer any more")),
      done: () => this.#end(row),
    };
  }

  /** From now on nothing is to be begun. Resolves when nothing is under way. */
  stop(): Promise<void> {
    this.#isStopping = true;
    this.#abort((row) => row.isLong);
    if (this.#rows.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  abortAll(): void {
    this.#abort(() => true);
  }

  #wait(row: Row): void {
    row.isLong = true;
    if (this.#isStopping) this.#abort((each) => each === row);
  }

  #abort(isMeant: (row: Row) => boolean): void {
    for (const row of this.#rows) if (isMeant(row)) row.controller.abort(over("The gateway stops"));
  }

  #end(row: Row): void {
    this.#rows.delete(row);
    if (this.#rows.size === 0) for (const go of this.#waiting.splice(0)) go();
  }
}

function over(problem: string): SkeinError {
  return new SkeinError("unavailable", { problem, advice });
}
