import type { EventFrame } from "../protocol/frames.ts";
import type { EventFilter, EventStream, ReceivedEvent } from "../protocol/methods/calls.ts";
import type { Result } from "../protocol/methods/method-table.ts";
import { isPassing, unavailable } from "./call-error.ts";
import { EventQueue } from "./event-queue.ts";
import type { Link, LinkListener } from "./link.ts";

/**
 * Events over a socket of their own: frames do not say which subscription they are for, and a reader that is slow is cut off
 * without harm to calls. After a break it goes on behind the last event that came.
 */

export interface StreamOptions {
  readonly filter: EventFilter;
  /** How many events are held. */
  readonly most: number;
  open(listener: LinkListener): Link;
  /** Told of each subscription, the first too. */
  subscribed?(): void;
  /** Told once, however it ends. */
  ended?(): void;
}

export class LiveStream implements EventStream {
  readonly ready: Promise<void>;
  readonly #ready = Promise.withResolvers<void>();
  readonly #options: StreamOptions;
  readonly #queue: EventQueue;
  readonly #link: Link;
  #wake: () => void = () => undefined;
  /** The last event that came; `null`: not subscribed yet. */
  #last: number | null = null;
  #toldOfGap = false;
  #isOver = false;
  #error: unknown = null;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#queue = new EventQueue(options.most);
    this.ready = this.#ready.promise;
    // Whoever does not wait for it hears of it when reading.
    this.ready.catch(() => undefined);
    this.#link = options.open({
      opened: () => void this.#subscribe(),
      event: (frame) => this.#take(frame),
      lost: () => undefined,
      ended: (error) => this.#end(error),
    });
  }

  close(): void {
    // What is still held is not read.
    this.#queue.clear();
    this.#end(null);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedEvent, void> {
    try {
      while (true) {
        const event = this.#queue.take();
        if (event !== null) yield event;
        else if (this.#isOver) break;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
      if (this.#error !== null) throw this.#error;
    } finally {
      this.close();
    }
  }

  async #subscribe(): Promise<void> {
    const { socket } = this.#link;
    const after = this.#last;
    this.#toldOfGap = false;
    const params = { ...this.#options.filter, ...(after === null ? {} : { after }) };
    try {
      const answer = await this.#link.request("sessions.subscribe", params, { isIdempotent: false });
      this.#subscribed(after, (answer as Result<"sessions.subscribe">).seq);
    } catch (error) {
      // With the socket gone, the next one subscribes.
      if (isPassing(error) && this.#link.state !== "closed") this.#link.drop(socket);
      else this.#end(error);
    }
  }

  #subscribed(after: number | null, seq: number): void {
    if (after === null) this.#last ??= seq;
    else if (seq < after && !this.#toldOfGap) this.#restarted(after, seq);
    this.#ready.resolve();
    this.#options.subscribed?.();
  }

  /** A gateway that has counted less far than this is another one, whatever it says. */
  #restarted(after: number, upTo: number): void {
    this.#last = upTo;
    this.#push({ event: "gap", payload: { after, upTo, reason: "restart" }, seq: upTo });
  }

  #take(frame: EventFrame): void {
    const { event, seq, payload } = frame as ReceivedEvent;
    if (event === "gap") {
      this.#toldOfGap = true;
      this.#last = payload.reason === "restart" ? payload.upTo : Math.max(this.#last ?? 0, payload.upTo);
    } else {
      if (this.#last !== null && seq <= this.#last) return;
      this.#last = seq;
    }
    this.#push({ event, seq, payload } as ReceivedEvent);
  }

  #push(event: ReceivedEvent): void {
    if (this.#isOver) return;
    this.#queue.push(event);
    this.#wake();
  }

  #end(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#ready.reject(error ?? unavailable("The stream was closed before it was subscribed.", false));
    void this.#link.close();
    this.#wake();
    this.#options.ended?.();
  }
}
