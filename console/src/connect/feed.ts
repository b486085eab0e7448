import type { EventStream, ReceivedEvent, SkeinClient } from "skein/client";
import { SingleFlight } from "./single-flight.ts";

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
  "gateway.reloaded",
];

export type FeedListener = (event: ReceivedEvent) => void;

/** One stream of events for the whole page, passed to every listener in order. */
export class Feed {
  readonly #listeners = new Set<FeedListener>();
  #close: () => void = () => undefined;

  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  open(client: SkeinClient): void {
    let stream: EventStream | null = null;
    // A subscription that was refused is made again later.
    const subscription = new SingleFlight(async () => {
      stream = client.events({ events: knownEvents(client) });
      await this.#read(stream).catch((error: unknown) => {
        // The client reports the end of the whole connection by its state.
        if (client.state !== "closed") throw error;
      });
    });
    this.#close = () => {
      subscription.close();
      stream?.close();
    };
    void subscription.request();
  }

  close(): void {
    this.#close();
  }

  async #read(stream: EventStream): Promise<void> {
    // What happened before the subscription has no event.
    void stream.ready.then(
      () => this.#publish({ event: "gap", seq: 0, payload: { after: 0, upTo: 0 } } as ReceivedEvent),
      () => undefined,
    );
    for await (const event of stream) this.#publish(event);
  }

  #publish(event: ReceivedEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

function knownEvents({ hello }: SkeinClient): string[] {
  return deskEvents.filter((pattern) => pattern.endsWith(".*") || hello.events.includes(pattern));
}
