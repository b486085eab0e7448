import type { ConnectParams, EventFrame, HelloPayload } from "../protocol/frames.ts";
import { closeCodes } from "../protocol/wire.ts";
import type { Timing } from "./backoff.ts";
import { CallError } from "./call-error.ts";
import type { SocketClass } from "./contract.ts";
import type { Answered, ReceivedFrame } from "./read-frame.ts";
import { isLongFrame, readFrame, readLongFrame } from "./read-frame.ts";

/** One socket, from its opening to its end, with the handshake. */

export interface SocketSettings {
  readonly url: string;
  readonly Socket: SocketClass;
  readonly params: ConnectParams;
  /** How long the handshake may take. */
  readonly timeoutMs: number;
  readonly timing: Timing;
}

export interface SocketListener {
  hello(hello: HelloPayload): void;
  /** A message arrived. Its frame follows, which may take a while to parse. */
  heard(): void;
  frame(frame: Answered | EventFrame): void;
  /** Once, and nothing behind it. `refusal`: what `connect` was answered with. */
  closed(code: number, refusal: CallError | null): void;
}

export interface LiveSocket {
  send(text: string): void;
  /** Tells the listener nothing more. Resolves when the other side has closed too, or after a while. */
  close(): Promise<void>;
  /** The same as a loss: the listener is told. */
  drop(): void;
}

/** What a socket that broke without a word is closed with. */
const brokenCode = 1006;
const goodbyeMs = 1000;
const connectId = "connect";

export function openSocket(settings: SocketSettings, listener: SocketListener): LiveSocket {
  const { url, Socket, params, timeoutMs, timing } = settings;
  const socket = new Socket(url as never);
  const gone = Promise.withResolvers<void>();
  const over = new AbortController();
  let isGreeted = false;
  /** Resolves when every frame that arrived so far is delivered; `null` if none is pending. */
  let pending: Promise<void> | null = null;
  const takeBack = timing.setTimer(timeoutMs, () => end(brokenCode, null));

  function end(code: number, refusal: CallError | null): void {
    if (over.signal.aborted) return;
    over.abort();
    takeBack();
    socket.close();
    listener.closed(code, refusal);
  }

  function greeted(frame: Answered): void {
    if (frame.ok) {
      isGreeted = true;
      takeBack();
      listener.hello(frame.payload as HelloPayload);
    } else end(brokenCode, new CallError(frame.error));
  }

  function deliver(frame: ReceivedFrame | null): void {
    if (over.signal.aborted) return;
    // It may have held an answer. Over a new socket the call is sent again or rejected.
    if (frame === null) end(brokenCode, null);
    else if (frame.type === "other") return;
    else if (isGreeted) listener.frame(frame);
    else if (frame.type === "res" && frame.id === connectId) greeted(frame);
  }

  /** At once, or after the frames that are still being parsed. */
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
      takeBack();
      socket.close();
      const giveUp = timing.setTimer(goodbyeMs, () => gone.resolve());
      return gone.promise.finally(giveUp);
    },
  };
}

/** Whether to come again may help after a socket was closed with this. */
export function reconnectsAfter(code: number): boolean {
  return Object.values(closeCodes).find((each) => each.code === code)?.reconnects ?? true;
}

/** Why it was closed, as an error; `null`: the gateway said nothing about it. */
export function closeError(code: number): CallError | null {
  const found = Object.values(closeCodes).find((each) => each.code === code);
  if (found === undefined) return null;
  const { reason, reconnects } = found;
  const message = `The gateway closed the connection: ${reason}.`;
  const isToken = code === closeCodes.unauthorized.code || code === closeCodes.revoked.code;
  if (isToken) {
    return new CallError({ code: "unauthorized", message: `${message} Connect with a token that counts.` });
  }
  if (code === closeCodes.tooLarge.code) return new CallError({ code: "too_large", message });
  return new CallError({ code: "unavailable", message, retryable: reconnects });
}
