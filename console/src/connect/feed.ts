import type { EventStream, ReceivedEvent, SkeinClient } from "skein/client";
import { SingleFlight } from "./single-flight.ts";

/** The events that change a list. The open session reads its own stream. */
const deskEvents = [
  "run.queued",
  "run.started",
  "run.step",
  "run.retry",
  "run.recovered",
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

/** One event stream for the whole page. Events are passed to every listener in order. */
export class Feed {
  readonly #listeners = new Set<FeedListener>();
  #close: () => void = () => undefined;

  listen(listener: FeedListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  open(client: SkeinClient): void {
    let stream: EventStream | null = null;
    // A rejected subscription is retried later.
    const subscription = new SingleFlight(async () => {
      stream = client.events({ events: knownEvents(client) });
      await this.#read(stream).catch((error: unknown) => {
        // If the whole connection has ended, the client's state shows that.
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
    // There are no events for changes made before the subscription.
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
