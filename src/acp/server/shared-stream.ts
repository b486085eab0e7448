import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";

/** Above this number of unread events, a reader gets a gap event instead of them. */
const maxUnread = 1000;

/** Gives many readers the events of one stream, which is open as long as there is a reader. */
export class SharedStream {
  readonly #open: () => EventStream;
  readonly #readers = new Set<Reader>();
  #source: EventStream | null = null;

  constructor(open: () => EventStream) {
    this.#open = open;
  }

  subscribe(): EventStream {
    const source = this.#source ?? this.#openSource();
    const reader = new Reader(source.ready, () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0 || this.#source !== source) return;
      source.close();
      this.#source = null;
    });
    this.#readers.add(reader);
    return reader;
  }

  #openSource(): EventStream {
    const source = this.#open();
    this.#source = source;
    void this.#forward(source);
    return source;
  }

  async #forward(source: EventStream): Promise<void> {
    let end: StreamEnd = {};
    try {
      for await (const received of source) for (const reader of this.#readers) reader.push(received);
    } catch (error) {
      end = { error };
    }
    if (this.#source !== source) return;
    this.#source = null;
    for (const reader of [...this.#readers]) reader.end(end);
  }
}

/** `error` is present if the stream failed. */
interface StreamEnd {
  readonly error?: unknown;
}

class Reader implements EventStream {
  readonly ready: Promise<void>;
  readonly #onClose: () => void;
  #unread: ReceivedEvent[] = [];
  #end: StreamEnd | null = null;
  #wake: () => void = () => undefined;

  constructor(ready: Promise<void>, onClose: () => void) {
    this.ready = ready;
    this.#onClose = onClose;
  }

  push(received: ReceivedEvent): void {
    this.#unread.push(received);
    if (this.#unread.length > maxUnread) this.#unread = [gapBefore(received.seq)];
    this.#wake();
  }

  end(end: StreamEnd): void {
    this.#end ??= end;
    this.#wake();
  }

  close(): void {
    this.#unread = [];
    this.end({});
    this.#onClose();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ReceivedEvent> {
    for (;;) {
      const next = this.#unread.shift();
      if (next !== undefined) yield next;
      else if (this.#end === null) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else if ("error" in this.#end) throw this.#end.error;
      else return;
    }
  }
}

function gapBefore(seq: number): ReceivedEvent {
  return { event: "gap", payload: { after: seq, upTo: seq, reason: "slow" }, seq };
}
