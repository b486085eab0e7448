import type { MethodName } from "../../protocol/methods/method-table.ts";

/** Calls that read or write much at once, in two lines: those that write may wait for the locks of others. */
const heavyMethods: ReadonlyMap<string, "reading" | "writing"> = new Map<MethodName, "reading" | "writing">([
  ["sessions.preview", "reading"],
  ["sessions.tree", "reading"],
  ["sessions.entries", "reading"],
  ["sessions.usage", "reading"],
  ["sessions.search", "reading"],
  ["sessions.context", "reading"],
  ["sessions.export", "reading"],
  ["blobs.get", "reading"],
  ["sessions.fork", "writing"],
  ["sessions.import", "writing"],
  ["sessions.redact", "writing"],
]);

/** What a token has in memory at once is so many sessions, however many it asks for. */
const mostRunning = 2;

interface Queue {
  running: number;
  readonly waiting: (() => void)[];
}

/** The heavy calls of each token: so many of a line at a time, the others behind them in the order in which they came. */
export class HeavyCalls {
  readonly #most: number;
  readonly #queues = new Map<string, Queue>();

  constructor(most = mostRunning) {
    this.#most = most;
  }

  /** How many lines have any. */
  get size(): number {
    return this.#queues.size;
  }

  /** What is no heavy call goes by at once. `signal`: nobody waits for it any more, and it is not begun. */
  async run<T>(tokenId: string, method: string, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
    const kind = heavyMethods.get(method);
    if (kind === undefined) return act();
    const line = `${kind} ${tokenId}`;
    const queue = this.#queues.get(line) ?? { running: 0, waiting: [] };
    this.#queues.set(line, queue);
    if (queue.running < this.#most) queue.running += 1;
    else await this.#wait(queue, signal);
    try {
      signal.throwIfAborted();
      return await act();
    } finally {
      this.#next(line, queue);
    }
  }

  /** Resolves with the place of one that has ended. */
  #wait({ waiting }: Queue, signal: AbortSignal): Promise<void> {
    return new Promise((go, leave) => {
      const begin = () => {
        signal.removeEventListener("abort", end);
        go();
      };
      const end = () => {
        const place = waiting.indexOf(begin);
        if (place !== -1) waiting.splice(place, 1);
        leave(signal.reason as Error);
      };
      waiting.push(begin);
      if (signal.aborted) end();
      else signal.addEventListener("abort", end, { once: true });
    });
  }

  #next(line: string, queue: Queue): void {
    const begin = queue.waiting.shift();
    if (begin !== undefined) {
      begin();
      return;
    }
    queue.running -= 1;
    if (queue.running === 0) this.#queues.delete(line);
  }
}
