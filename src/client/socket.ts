import { isRecord } from "../core/is-record.ts";
import { isLongJson, parseJson } from "../core/parse-json.ts";
import type { WireError } from "../protocol/errors.ts";
import type { ConnectParams, EventFrame, HelloPayload } from "../protocol/frames.ts";
import { closeCodes } from "../protocol/wire.ts";
import type { SocketClass } from "./contract.ts";
import { CallError } from "./contract.ts";
import type { Timing } from "./retry.ts";

/** A single socket with its handshake. */

export interface SocketSettings {
  readonly url: string;
  readonly Socket: SocketClass;
  readonly params: ConnectParams;
  /** The handshake timeout. */
  readonly timeoutMs: number;
  readonly timing: Timing;
}

export interface SocketListener {
  hello(hello: HelloPayload): void;
  /** Called when a message has arrived. Its frame follows once the message has been parsed. */
  heard(): void;
  frame(frame: ReceivedResponse | EventFrame): void;
  /** Called once, when the socket closes. `refusal` is the error response to `connect`. */
  closed(code: number, refusal: CallError | null): void;
}

export interface LiveSocket {
  send(text: string): void;
  /** Stops calling the listener. Resolves when the peer has closed the socket, or after a timeout. */
  close(): Promise<void>;
  /** Closes the socket as if it had been lost. The listener is called. */
  drop(): void;
}

/** The close code for a socket that was lost without a close frame. */
const brokenCode = 1006;
const goodbyeMs = 1000;
const connectId = "connect";

export function openSocket(settings: SocketSettings, listener: SocketListener): LiveSocket {
  const { url, Socket, params, timeoutMs, timing } = settings;
  const socket = new Socket(url as never);
  const gone = Promise.withResolvers<void>();
  const over = new AbortController();
  let isGreeted = false;
  /** Resolves when every frame received so far has been delivered. `null` if no frame is pending. */
  let pending: Promise<void> | null = null;
  const cancelTimer = timing.setTimer(timeoutMs, () => end(brokenCode, null));

  function end(code: number, refusal: CallError | null): void {
    if (over.signal.aborted) return;
    over.abort();
    cancelTimer();
    socket.close();
    listener.closed(code, refusal);
  }

  function greeted(frame: ReceivedResponse): void {
    if (frame.ok) {
      isGreeted = true;
      cancelTimer();
      listener.hello(frame.payload as HelloPayload);
    } else end(brokenCode, new CallError(frame.error));
  }

  function deliver(frame: ReceivedFrame | null): void {
    if (over.signal.aborted) return;
    // The invalid frame might have been a response, so the socket is replaced. Pending calls are then resent or
    // rejected.
    if (frame === null) end(brokenCode, null);
    else if (frame.type === "other") return;
    else if (isGreeted) listener.frame(frame);
    else if (frame.type === "res" && frame.id === connectId) greeted(frame);
  }

  /** Runs a function immediately or, if frames are still being parsed, after them. */
  function inOrder(act: () => void | Promise<void>, isLong = false): void {
    if (pending === null && !isLong) return void act();
    const last = (pending ?? Promise.resolve()).finally(act).finally(() => {
      if (pending === last) pending = null;
    });
    pending = last;
  }

  socket.addEventListener("open", () => {
    if (!over.signal.aborted)
      socket.send(JSON.stringify({ type: "req", id: connectId, method: "connect", params }));
  });
  socket.addEventListener("message", ({ data }) => {
    if (over.signal.aborted) return;
    listener.heard();
    if (isLongFrame(data)) inOrder(async () => deliver(await readLongFrame(data, over.signal)), true);
    else inOrder(() => deliver(readFrame(data)));
  });
  socket.addEventListener("error", () => inOrder(() => end(brokenCode, null)));
  socket.addEventListener("close", ({ code }) => {
    gone.resolve();
    inOrder(() => end(code ?? brokenCode, null));
  });

  return {
    send: (text) => socket.send(text),
    drop: () => end(brokenCode, null),
    close: () => {
      over.abort();
      cancelTimer();
      socket.close();
      const giveUp = timing.setTimer(goodbyeMs, () => gone.resolve());
      return gone.promise.finally(giveUp);
    },
  };
}

/** Whether reconnecting might help after this close code. */
export function reconnectsAfter(code: number): boolean {
  return Object.values(closeCodes).find((each) => each.code === code)?.reconnects ?? true;
}

/** Returns the error for a close code, or `null` if the code has no specific meaning. */
export function closeError(code: number): CallError | null {
  const found = Object.values(closeCodes).find((each) => each.code === code);
  if (found === undefined) return null;
  const { reason, reconnects } = found;
  const message = `The gateway closed the connection: ${reason}.`;
  const isToken = code === closeCodes.unauthorized.code || code === closeCodes.revoked.code;
  if (isToken) {
    return new CallError({ code: "unauthorized", message: `${message} Connect with a valid token.` });
  }
  if (code === closeCodes.tooLarge.code) return new CallError({ code: "too_large", message });
  return new CallError({ code: "unavailable", message, retryable: reconnects });
}

export type ReceivedResponse =
  | { readonly type: "res"; readonly id: string; readonly ok: true; readonly payload: unknown }
  | { readonly type: "res"; readonly id: string; readonly ok: false; readonly error: WireError };

/** A frame from a newer protocol version. */
export interface OtherFrame {
  readonly type: "other";
}

export type ReceivedFrame = ReceivedResponse | EventFrame | OtherFrame;

/** Whether a message must be read with `readLongFrame`. */
export function isLongFrame(data: unknown): data is string {
  return typeof data === "string" && isLongJson(data);
}

/**
 * Parses a message, or returns `null` if it is not a frame. Payloads come from the gateway, so they are not validated.
 */
export function readFrame(data: unknown): ReceivedFrame | null {
  try {
    return typeof data === "string" ? frameIn(JSON.parse(data)) : null;
  } catch {
    return null; // Not JSON.
  }
}

/** Parses a long message in chunks so that a web page stays responsive. Also returns `null` if `signal` is aborted. */
export async function readLongFrame(text: string, signal: AbortSignal): Promise<ReceivedFrame | null> {
  try {
    return frameIn(await parseJson(text, signal));
  } catch {
    return null; // Not JSON, or no longer needed.
  }
}

function frameIn(value: unknown): ReceivedFrame | null {
  if (!isRecord(value) || typeof value.type !== "string") return null;
  if (value.type === "res") return isAnswer(value) ? (value as unknown as ReceivedResponse) : null;
  if (value.type === "event") return isEvent(value) ? (value as unknown as EventFrame) : null;
  return { type: "other" };
}

function isAnswer({ id, ok, error }: Readonly<Record<string, unknown>>): boolean {
  if (typeof id !== "string") return false;
  return ok === true || (ok === false && isError(error));
}

function isError(error: unknown): boolean {
  return isRecord(error) && typeof error.code === "string" && typeof error.message === "string";
}

function isEvent({ event, seq, payload }: Readonly<Record<string, unknown>>): boolean {
  if (typeof event !== "string" || !isSeq(seq) || !isRecord(payload)) return false;
  return event !== "gap" || (isSeq(payload.after) && isSeq(payload.upTo));
}

function isSeq(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Detects a dead socket that was never closed, for example after the machine has slept. */

const quietMs = 30_000;
/** Leaves enough time for a large response. */
const answerMs = 30_000;
/** Used when a socket is checked because the page or device was asleep. */
const checkMs = 5000;

/** A request that every gateway answers for any token. */
export const heartbeatFrame = JSON.stringify({
  type: "req",
  id: "pulse",
  method: "sessions.unsubscribe",
  params: { subscriptionId: "pulse" },
});

export interface HeartbeatActions {
  ask(): void;
  /** Called if nothing has arrived since the request. */
  dead(): void;
}

export class Heartbeat {
  readonly #timing: Timing;
  readonly #acts: HeartbeatActions;
  #cancelTimer: () => void;
  #wasHeard = false;

  constructor(timing: Timing, acts: HeartbeatActions) {
    this.#timing = timing;
    this.#acts = acts;
    this.#cancelTimer = this.#wait(quietMs, false);
  }

  /** Called for every frame, so it must be cheap. */
  heard(): void {
    this.#wasHeard = true;
  }

  askNow(): void {
    this.#cancelTimer();
    this.#acts.ask();
    this.#cancelTimer = this.#wait(checkMs, true);
  }

  stop(): void {
    this.#cancelTimer();
  }

  #wait(ms: number, wasAsked: boolean): () => void {
    this.#wasHeard = false;
    return this.#timing.setTimer(ms, () => {
      if (!this.#wasHeard && wasAsked) {
        this.#acts.dead();
        return;
      }
      const asks = !this.#wasHeard;
      if (asks) this.#acts.ask();
      this.#cancelTimer = this.#wait(asks ? answerMs : quietMs, asks);
    });
  }
}
