import { EventQueue } from "../../client/event-queue.ts";
import type { SkeinEvent, SkeinEventType } from "../../core/events.ts";
import { eventPayload, isWanted } from "../../protocol/events.ts";
import type { EventStream, ReceivedEvent } from "../../protocol/methods/calls.ts";
import type { Wanted } from "../events/contract.ts";
import { isAbout } from "../events/wanted.ts";

export interface LocalEventSource {
  subscribe(listener: (event: SkeinEvent) => void): () => void;
  /** What is to be heard of, which may have to be looked up; throws `not_found`. */
  wanted(): Promise<Wanted>;
}

/** As whoever has the folder sees them. */
const admin = {
  isAdmin: true,
  allUsers: true,
  redact: (value: unknown) => value,
  redactDelta: ({ delta }: SkeinEvent<"run.delta">) => delta,
};

/** So many wait to be read, as in a stream over a socket. */
const mostWaiting = 10_000;

/** The events of this process, from the call on: those that a hub would send, as they would come over a socket. */
export class LocalEvents implements EventStream {
  readonly ready: Promise<void>;
  readonly #leave: () => void;
  readonly #onClose: (stream: LocalEvents) => void;
  readonly #queue: EventQueue;
  /** `null`: not known yet; until then everything is taken, and looked at when it is read. */
  #wanted: Wanted | null = null;
  #seq = 0;
  #isClosed = false;
  #news = Promise.withResolvers<void>();

  constructor(
    source: LocalEventSource,
    onClose: (stream: LocalEvents) => void = () => undefined,
    most = mostWaiting,
  ) {
    this.#onClose = onClose;
    this.#queue = new EventQueue(most);
    this.#leave = source.subscribe((event) => this.#take(event));
    this.ready = this.#begin(source);
    // Whoever reads is told; whoever only waits for it need not.
    this.ready.catch(() => this.close());
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#leave();
    this.#news.resolve();
    this.#onClose(this);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedEvent, void, undefined> {
    try {
      await this.ready;
      for (;;) {
        const next = this.#queue.take();
        if (next === null) {
          if (this.#isClosed) return;
          await this.#news.promise;
        } else if (this.#concerns(next)) yield next;
      }
    } finally {
      this.close();
    }
  }

  async #begin(source: LocalEventSource): Promise<void> {
    this.#wanted = await source.wanted();
  }

  #take(event: SkeinEvent): void {
    this.#seq += 1;
    if (this.#wanted !== null && !isFor(this.#wanted, event.type, event)) return;
    this.#queue.push({
      event: event.type,
      payload: eventPayload(event, admin),
      seq: this.#seq,
    } as ReceivedEvent);
    const { resolve } = this.#news;
    this.#news = Promise.withResolvers();
    resolve();
  }

  /** A gap may be about anything. */
  #concerns(received: ReceivedEvent): boolean {
    if (this.#wanted === null || received.event === "gap") return true;
    const { userId = null, sessionKey } = received.payload;
    return isFor(this.#wanted, received.event, { userId, sessionKey });
  }
}

function isFor(wanted: Wanted, name: SkeinEventType, about: Parameters<typeof isAbout>[1]): boolean {
  return isWanted(name, wanted.events) && isAbout(wanted, about);
}
