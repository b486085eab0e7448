import type { Calls, EventFilter, EventStream, ReceivedEvent } from "../protocol/calls.ts";
import type { EventFrame } from "../protocol/frames.ts";
import type { Result } from "../protocol/method-table.ts";
import type { Connection, ConnectionListener } from "./connection.ts";
import { isTransient, unavailable } from "./contract.ts";
import { EventQueue } from "./event-queue.ts";
import type { Timing } from "./retry.ts";
import { delayBefore } from "./retry.ts";
import type { LiveSocket } from "./socket.ts";

/**
 * Receives events over a separate socket, because frames do not identify their subscription and because disconnecting a
 * slow reader must not affect calls. After a reconnect, the stream resumes after the last event.
 */

export interface StreamOptions {
  readonly filter: EventFilter;
  /** The maximum number of buffered events. */
  readonly most: number;
  readonly timing: Timing;
  open(listener: ConnectionListener): Connection;
  /** Called once when the stream ends. */
  ended?(): void;
}

/** Delays between attempts to subscribe to a gateway that is not ready. */
const patience = { minMs: 250, maxMs: 10_000 };

export class LiveStream implements EventStream, Calls {
  readonly ready: Promise<void>;
  readonly #ready = Promise.withResolvers<void>();
  readonly #options: StreamOptions;
  readonly #queue: EventQueue;
  readonly #connection: Connection;
  #wake: () => void = () => undefined;
  /** The last event, or `null` before the first subscription. */
  #last: number | null = null;
  #toldOfGap = false;
  #refused = 0;
  #cancelTimer: () => void = () => undefined;
  #isOver = false;
  #error: unknown = null;

  constructor(options: StreamOptions) {
    this.#options = options;
    this.#queue = new EventQueue(options.most);
    this.ready = this.#ready.promise;
    // A caller that does not await `ready` receives the error when it reads.
    this.ready.catch(() => undefined);
    this.#connection = options.open({
      opened: () => void this.#subscribe(),
      event: (frame) => this.#take(frame),
      lost: () => undefined,
      ended: (error) => this.#end(error),
    });
  }

  get call(): Calls["call"] {
    return this.#connection.call;
  }

  checkConnection(): void {
    this.#connection.check();
  }

  close(): void {
    // Buffered events are discarded.
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
    const { socket } = this.#connection;
    const after = this.#last;
    this.#toldOfGap = false;
    const params = { ...this.#options.filter, ...(after === null ? {} : { after }) };
    try {
      const answer = await this.#connection.request("sessions.subscribe", params, { isIdempotent: false });
      this.#subscribed(after, (answer as Result<"sessions.subscribe">).seq);
    } catch (error) {
      if (!isTransient(error) || this.#connection.state === "closed") this.#end(error);
      else this.#subscribeLater(socket, error.retryAfterMs ?? 0);
    }
  }

  /** Retries on the same socket because many reconnecting clients would prevent a gateway from becoming ready. */
  #subscribeLater(socket: LiveSocket | null, leastMs: number): void {
    const { timing } = this.#options;
    const delay = delayBefore(this.#refused++, patience, () => timing.random());
    this.#cancelTimer();
    this.#cancelTimer = timing.setTimer(Math.max(leastMs, delay), () => {
      // If that socket was lost, the next one subscribes.
      if (socket !== null && this.#connection.socket === socket) void this.#subscribe();
    });
  }

  #subscribed(after: number | null, seq: number): void {
    this.#refused = 0;
    if (after === null) this.#last ??= seq;
    else if (seq < after && !this.#toldOfGap) this.#restarted(after, seq);
    this.#ready.resolve();
  }

  /** Lower sequence numbers mean that a different gateway process is running. */
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
    this.#cancelTimer();
    this.#error = error;
    this.#ready.reject(
      error ?? unavailable("The stream was closed before the subscription was active.", false),
    );
    void this.#connection.close();
    this.#wake();
    this.#options.ended?.();
  }
}
