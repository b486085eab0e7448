import { wireLimits } from "../protocol/wire.ts";
import { CallError, unavailable } from "./call-error.ts";
import type { Answered } from "./read-frame.ts";

/** Requests that are not answered yet, over as many sockets as it takes. */

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** May be sent again when nobody knows whether it was done. */
  readonly isIdempotent: boolean;
}

interface Waiting extends RequestOptions {
  readonly method: string;
  readonly text: string;
  sends: number;
  isSent: boolean;
  resolve(payload: unknown): void;
  reject(reason: unknown): void;
}

/** A request that broke this many sockets is not tried on another one. */
const mostSends = 3;

const encoder = new TextEncoder();

export class Requests {
  readonly #waiting = new Map<string, Waiting>();
  #last = 0;
  /** As the gateway said. */
  frameBytes: number = wireLimits.frameBytes;

  /** `send`: the socket that is open; without one it waits for the next. */
  add(
    method: string,
    params: unknown,
    options: RequestOptions,
    send: ((text: string) => void) | null,
  ): Promise<unknown> {
    const id = String(++this.#last);
    const { signal } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const text = JSON.stringify({ type: "req", id, method, params });
      if (isLonger(text, this.frameBytes)) return reject(tooLarge(method, this.frameBytes));
      const onAbort = () => this.#settle(id)?.reject(signal?.reason);
      signal?.addEventListener("abort", onAbort, { once: true });
      const forget = () => signal?.removeEventListener("abort", onAbort);
      const waiting: Waiting = {
        ...options,
        method,
        text,
        sends: 0,
        isSent: false,
        resolve: (payload) => {
          forget();
          resolve(payload);
        },
        reject: (reason) => {
          forget();
          reject(reason);
        },
      };
      this.#waiting.set(id, waiting);
      if (send !== null) sendNow(waiting, send);
    });
  }

  /** An answer to a request that nobody waits for any more is passed by. */
  answer(frame: Answered): void {
    const waiting = this.#settle(frame.id);
    if (frame.ok) waiting?.resolve(frame.payload);
    else waiting?.reject(new CallError(frame.error));
  }

  /** A socket is open: what was not sent, and what was lost, goes out in the order of the calls. */
  opened(send: (text: string) => void): void {
    for (const waiting of [...this.#waiting.values()]) sendNow(waiting, send);
  }

  /** The socket broke. */
  lost(): void {
    for (const [id, waiting] of [...this.#waiting]) {
      if (!waiting.isSent) continue;
      waiting.isSent = false;
      if (!waiting.isIdempotent || waiting.sends >= mostSends)
        this.#settle(id)?.reject(unknownOutcome(waiting, "The connection to the gateway broke"));
    }
  }

  /** There will be no other socket. What was sent may have happened all the same. */
  end(error: CallError): void {
    for (const [id, waiting] of [...this.#waiting]) {
      const isOpen = waiting.isSent && !waiting.isIdempotent;
      this.#settle(id)?.reject(isOpen ? unknownOutcome(waiting, "The client was closed") : error);
    }
  }

  #settle(id: string): Waiting | null {
    const waiting = this.#waiting.get(id) ?? null;
    this.#waiting.delete(id);
    return waiting;
  }
}

function sendNow(waiting: Waiting, send: (text: string) => void): void {
  waiting.isSent = true;
  waiting.sends += 1;
  send(waiting.text);
}

function unknownOutcome({ method, isIdempotent }: Waiting, problem: string): CallError {
  const advice = isIdempotent
    ? "The same call again changes nothing further."
    : "Look whether it did before you call it again.";
  return unavailable(
    `${problem} before ${method} was answered, which may or may not have happened. ${advice}`,
  );
}

function tooLarge(method: string, bytes: number): CallError {
  const message = `The params of ${method} do not fit into a frame of ${bytes} bytes. Nothing was sent; send less at once.`;
  return new CallError({ code: "too_large", message });
}

/** In UTF-8, in which a unit of a text takes three bytes at the most. */
function isLonger(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false;
  return text.length > bytes || encoder.encode(text).length > bytes;
}
