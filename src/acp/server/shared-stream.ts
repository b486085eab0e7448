import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";

/** So many wait for one reader at the most; beyond that it is told that some are missing. */
const mostWaiting = 1000;

/** One stream of events for everybody who wants the same: streams are counted, and sessions of an editor are many. */
export class SharedStream {
  readonly #open: () => EventStream;
  readonly #readers = new Set<Reader>();
  #source: EventStream | null = null;

  constructor(open: () => EventStream) {
    this.#open = open;
  }

  /** From now on; the stream behind it ends with its last reader. */
  subscribe(): EventStream {
    const source = this.#source ?? this.#begin();
    const reader = new Reader(source.ready, () => {
      this.#readers.delete(reader);
      if (this.#readers.size === 0 && this.#source === source) this.#end();
    });
    this.#readers.add(reader);
    return reader;
  }

  #begin(): EventStream {
    const source = this.#open();
    this.#source = source;
    void this.#pump(source);
    return source;
  }

  async #pump(source: EventStream): Promise<void> {
    let failure: { readonly error: unknown } | null = null;
    try {
      for await (const received of source) for (const reader of this.#readers) reader.push(received);
    } catch (error) {
      failure = { error };
    }
    if (this.#source !== source) return;
    this.#source = null;
    for (const reader of [...this.#readers]) reader.end(failure);
  }

  #end(): void {
    this.#source?.close();
    this.#source = null;
  }
}

class Reader implements EventStream {
  readonly ready: Promise<void>;
  readonly #left: () => void;
  #waiting: ReceivedEvent[] = [];
  #over: { readonly failure: { readonly error: unknown } | null } | null = null;
  #wake: () => void = () => undefined;

  constructor(ready: Promise<void>, left: () => void) {
    this.ready = ready;
    this.#left = left;
  }

  push(received: ReceivedEvent): void {
    this.#waiting.push(received);
    if (this.#waiting.length > mostWaiting) this.#waiting = [missing(received.seq)];
    this.#wake();
  }

  end(failure: { readonly error: unknown } | null): void {
    this.#over ??= { failure };
    this.#wake();
  }

  close(): void {
    this.#waiting = [];
    this.end(null);
    this.#left();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ReceivedEvent> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#over !== null) {
        if (this.#over.failure !== null) throw this.#over.failure.error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

function missing(seq: number): ReceivedEvent {
  return { event: "gap", payload: { after: seq, upTo: seq, reason: "slow" }, seq };
}
