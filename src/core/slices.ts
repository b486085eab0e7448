/** Long work in slices: behind each the event loop has a turn, so that whoever asks for little is answered meanwhile. */

/** What is read, made or looked through in one slice, near enough in bytes of text. */
export const sliceBytes = 512 * 1024;
/** A slice is over by then too, for work that takes longer than its bytes say. */
const sliceMs = 10;

/** Browsers have no `setImmediate`, and delay timers by a second in pages in the background; messages are not delayed. */
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

/** In the order in which they came, whoever's work it is: one slice in a turn, however many are at work. */
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

/** A turn of the loop, whoever else waits for one. */
function ownTurn(): Promise<void> {
  return new Promise((go) => afterTurn(go));
}

/** The slices of one piece of work. */
export class Slices {
  readonly #signal: AbortSignal | undefined;
  #next = nextTurn;
  #bytes = 0;
  #begun = performance.now();

  /** `signal`: where it comes, the work ends with its reason at the next turn. */
  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /** For what is done under a lock: it stands behind nobody, so that those who wait for the lock wait for it alone. */
  static underLock(): Slices {
    const slices = new Slices();
    slices.#next = ownTurn;
    return slices;
  }

  /** So much more is done. `null`: go on; else wait for it, and go on then. */
  did(bytes: number): Promise<void> | null {
    this.#bytes += bytes;
    if (this.#bytes < sliceBytes && performance.now() - this.#begun < sliceMs) return null;
    return this.turn();
  }

  /** Gives the loop its turn now. */
  async turn(): Promise<void> {
    await this.#next();
    this.#signal?.throwIfAborted();
    this.#bytes = 0;
    this.#begun = performance.now();
  }

  /** Work that can be parted, to its end. */
  async run<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      const turn = this.did(step.value);
      if (turn !== null) await turn;
    }
  }
}

/** Work that can be parted: behind each step it says how many bytes that was about, and at its end what came of it. */
export type Steps<T> = Generator<number, T>;

/** All of it at once, for what is short or has nobody waiting. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
