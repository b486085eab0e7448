const batchMs = 200;
const retryMs = { min: 1000, max: 30_000 };

/**
 * Runs one read at a time. Requests during a read cause one more read after it, so that the last result is never older
 * than the last request. A failed read is retried at increasing intervals.
 */
export class SingleFlight {
  readonly #read: () => Promise<void>;
  #running: Promise<void> | null = null;
  #isRequested = false;
  #isClosed = false;
  #failed = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(read: () => Promise<void>) {
    this.#read = read;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Resolves when no reads remain, or after one has failed. */
  request(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#cancelTimer();
    this.#isRequested = true;
    this.#running ??= this.#run();
    return this.#running;
  }

  /** Requests in quick succession cause a single read. */
  requestSoon(delayMs = batchMs): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => void this.request(), delayMs);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
  }

  async #run(): Promise<void> {
    while (this.#isRequested && !this.#isClosed) {
      this.#isRequested = false;
      try {
        await this.#read();
        this.#failed = 0;
      } catch {
        this.requestSoon(Math.min(retryMs.max, retryMs.min * 2 ** this.#failed));
        this.#failed += 1;
        break;
      }
    }
    this.#running = null;
  }

  #cancelTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
