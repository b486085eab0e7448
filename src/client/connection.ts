import type { Calls } from "../protocol/calls.ts";
import type { EventFrame, HelloPayload } from "../protocol/frames.ts";
import { idempotentMethods } from "../protocol/idempotent.ts";
import type { Result } from "../protocol/method-table.ts";
import { wireLimits } from "../protocol/wire.ts";
import type { ClientState } from "./contract.ts";
import { CallError, isTransient, unavailable } from "./contract.ts";
import type { Backoff } from "./retry.ts";
import { delayBefore } from "./retry.ts";
import type { LiveSocket, ReceivedResponse, SocketSettings } from "./socket.ts";
import { closeError, Heartbeat, heartbeatFrame, openSocket, reconnectsAfter } from "./socket.ts";

/** A connection to a gateway. It replaces its socket when the socket is lost. */

export interface ConnectionSettings extends SocketSettings {
  /** `null` disables reconnecting. */
  readonly reconnect: (Backoff & { readonly forMs: number }) | null;
}

export interface ConnectionListener {
  opened(hello: HelloPayload): void;
  event(frame: EventFrame): void;
  /** The connection was lost and the client is reconnecting. */
  lost(): void;
  /** The connection has ended permanently. Not called after `close`. */
  ended(error: CallError): void;
}

/** After a socket has stayed open this long, the backoff starts over. */
const steadyMs = 5000;

/**
 * When many clients reconnect at the same time, the gateway accepts them one by one. A client that gives up goes to the
 * end of the queue. The handshake timeout therefore doubles after each handshake that times out, up to this factor.
 */
const mostPatience = 8;

export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #listener: ConnectionListener;
  readonly #requests = new Requests();
  #state: ClientState = "connecting";
  #socket: LiveSocket | null = null;
  #heartbeat: Heartbeat | null = null;
  #error: CallError | null = null;
  #cancelTimer: () => void = () => undefined;
  #failed = 0;
  /** The factor for the handshake timeout. */
  #patience = 1;
  #triedAt = 0;
  #openedAt = 0;
  /** When the last open socket was lost. */
  #lostAt: number;
  /** Whether to retry if no socket has ever been open. */
  #persists: boolean;

  constructor(settings: ConnectionSettings, listener: ConnectionListener, persists: boolean) {
    this.#settings = settings;
    this.#listener = listener;
    this.#persists = persists;
    this.#lostAt = settings.timing.now();
    this.#open();
  }

  get state(): ClientState {
    return this.#state;
  }

  /** Calls a method for a caller of the client. If the socket has been lost, the call waits for the next one. */
  readonly call: Calls["call"] = async (method, params, { signal } = {}) => {
    if (method === "sessions.subscribe" || method === "sessions.unsubscribe") throw useEvents(method);
    const isIdempotent = idempotentMethods.has(method);
    return (await this.request(method, params, { signal, isIdempotent })) as Result<typeof method>;
  };

  request(method: string, params: unknown, options: RequestOptions): Promise<unknown> {
    if (this.#state === "closed") return Promise.reject(this.#error ?? closedHere());
    const socket = this.#state === "open" ? this.#socket : null;
    return this.#requests.add(method, params, options, socket === null ? null : (text) => socket.send(text));
  }

  get socket(): LiveSocket | null {
    return this.#state === "open" ? this.#socket : null;
  }

  /** Reconnects now instead of waiting. If a socket is open, sends a heartbeat request on it. */
  check(): void {
    if (this.#state === "open") this.#heartbeat?.askNow();
    if (this.#state !== "connecting" || this.#socket !== null) return;
    this.#cancelTimer();
    this.#open();
  }

  async close(): Promise<void> {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#cancelTimer();
    this.#heartbeat?.stop();
    this.#requests.end(closedHere());
    await this.#socket?.close();
  }

  #open(): void {
    this.#triedAt = this.#settings.timing.now();
    const timeoutMs = this.#handshakeMs;
    const socket = openSocket(
      { ...this.#settings, timeoutMs },
      {
        hello: (hello) => this.#opened(hello, socket),
        heard: () => this.#heartbeat?.heard(),
        frame: (frame) => {
          if (frame.type === "res") this.#requests.answer(frame);
          else this.#listener.event(frame);
        },
        closed: (code, refusal) => this.#closed(code, refusal),
      },
    );
    this.#socket = socket;
  }

  get #handshakeMs(): number {
    return this.#settings.timeoutMs * this.#patience;
  }

  #opened(hello: HelloPayload, socket: LiveSocket): void {
    this.#state = "open";
    this.#patience = 1;
    this.#persists = true;
    this.#openedAt = this.#settings.timing.now();
    this.#requests.frameBytes = hello.limits.frameBytes;
    this.#heartbeat = new Heartbeat(this.#settings.timing, {
      ask: () => socket.send(heartbeatFrame),
      dead: () => socket.drop(),
    });
    this.#requests.opened((text) => socket.send(text));
    this.#listener.opened(hello);
  }

  #closed(code: number, refusal: CallError | null): void {
    const { timing, reconnect, url } = this.#settings;
    const now = timing.now();
    if (this.#state === "open") {
      this.#lostAt = now;
      if (now - this.#openedAt >= steadyMs) this.#failed = 0;
    } else if (now - this.#triedAt >= this.#handshakeMs) {
      this.#patience = Math.min(mostPatience, this.#patience * 2);
    }
    this.#state = "connecting";
    this.#socket = null;
    this.#heartbeat?.stop();
    this.#requests.lost();
    const error =
      refusal ??
      closeError(code) ??
      unavailable(`The gateway at ${url} cannot be reached or has disconnected.`);
    const comesBack = refusal === null ? reconnectsAfter(code) : mayComeAgain(refusal);
    const delay = this.#delay(refusal?.retryAfterMs ?? 0);
    if (!comesBack || !this.#persists || reconnect === null || now + delay - this.#lostAt > reconnect.forMs) {
      this.#end(error);
      return;
    }
    this.#cancelTimer = timing.setTimer(delay, () => this.#open());
    this.#listener.lost();
  }

  #delay(leastMs: number): number {
    const { timing, reconnect } = this.#settings;
    if (reconnect === null) return 0;
    return Math.max(
      leastMs,
      delayBefore(this.#failed++, reconnect, () => timing.random()),
    );
  }

  #end(error: CallError): void {
    this.#state = "closed";
    this.#error = error;
    this.#requests.end(error);
    this.#listener.ended(error);
  }
}

/** Whether a later attempt might succeed. A gateway that is unavailable or fails internally might recover. */
function mayComeAgain(refusal: CallError): boolean {
  return ["unavailable", "internal"].includes(refusal.code) || isTransient(refusal);
}

function useEvents(method: string): CallError {
  const message = `${method} applies to a single socket, which is replaced on reconnect. Use events() or follow(), which resubscribe automatically.`;
  return new CallError({ code: "invalid_request", message });
}

function closedHere(): CallError {
  return unavailable("The client is closed. Connect again.", false);
}

/** Pending requests, which survive a reconnect. */

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** `true` if the request can be resent when its outcome is unknown. */
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

/** A request is not resent after this many sockets have been lost while it was pending. */
const mostSends = 3;

const encoder = new TextEncoder();

export class Requests {
  readonly #waiting = new Map<string, Waiting>();
  #last = 0;
  /** From the gateway's `hello`. */
  frameBytes: number = wireLimits.frameBytes;

  /** `send` writes to the open socket. If `send` is `null`, the request waits for the next socket. */
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

  /** A response without a pending request is ignored. */
  answer(frame: ReceivedResponse): void {
    const waiting = this.#settle(frame.id);
    if (frame.ok) waiting?.resolve(frame.payload);
    else waiting?.reject(new CallError(frame.error));
  }

  /** Called when a socket has been opened. Sends requests that are unsent or whose socket was lost, in call order. */
  opened(send: (text: string) => void): void {
    for (const waiting of [...this.#waiting.values()]) sendNow(waiting, send);
  }

  /** Called when the socket has been lost. */
  lost(): void {
    for (const [id, waiting] of [...this.#waiting]) {
      if (!waiting.isSent) continue;
      waiting.isSent = false;
      if (!waiting.isIdempotent || waiting.sends >= mostSends)
        this.#settle(id)?.reject(unknownOutcome(waiting, "The connection to the gateway was lost"));
    }
  }

  /** Called when the connection has ended permanently. Requests that were sent might have been executed. */
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
    ? "It is safe to retry the call."
    : "Before you retry it, check whether it was executed.";
  return unavailable(
    `${problem} before ${method} was answered; the call may or may not have been executed. ${advice}`,
  );
}

function tooLarge(method: string, bytes: number): CallError {
  const message = `The params for ${method} do not fit into a frame of ${bytes} bytes. Nothing was sent; split the data into smaller calls.`;
  return new CallError({ code: "too_large", message });
}

/** A UTF-16 code unit takes at most three bytes of UTF-8. */
function isLonger(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false;
  return text.length > bytes || encoder.encode(text).length > bytes;
}
