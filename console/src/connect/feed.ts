import type { ReceivedEvent, SkeinClient } from "skein/client";

/** Everything but the text of answers, which only the open session needs. */
const deskEvents = [
  "run.queued",
  "run.started",
  "run.waiting",
  "run.resumed",
  "run.sleeping",
  "run.steered",
  "run.ended",
  "run.child",
  "session.*",
  "entry.appended",
  "approval.*",
  "outbox.*",
];

export type FeedListener = (event: ReceivedEvent) => void;

/** One stream of events for the whole page, handed to every listener in order. */
export class Feed {
  readonly #listeners = new Set<FeedListener>();
  #close: () => void = () => undefined;

  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  open(client: SkeinClient): void {
    const known = deskEvents.filter(
      (pattern) => pattern.endsWith(".*") || client.hello.events.includes(pattern),
    );
    const stream = client.events({ events: known });
    this.#close = () => stream.close();
    void this.#read(stream);
    // What happened between the first readings and the subscription has no event.
    void stream.ready.then(
      () => this.#hand({ event: "gap", seq: 0, payload: { after: 0, upTo: 0 } } as ReceivedEvent),
      () => undefined,
    );
  }

  close(): void {
    this.#close();
  }

  #hand(event: ReceivedEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  async #read(stream: AsyncIterable<ReceivedEvent>): Promise<void> {
    try {
      for await (const event of stream) this.#hand(event);
    } catch {
      // The client reports the end of the connection by its state.
    }
  }
}
