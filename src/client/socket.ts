import type { ConnectParams, EventFrame, HelloPayload } from "../protocol/frames.ts";
import { closeCodes } from "../protocol/wire.ts";
import type { Timing } from "./backoff.ts";
import { CallError } from "./call-error.ts";
import type { SocketClass } from "./contract.ts";
import type { Answered } from "./read-frame.ts";
import { readFrame } from "./read-frame.ts";

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
  let isOver = false;
  let isGreeted = false;
  const takeBack = timing.setTimer(timeoutMs, () => end(brokenCode, null));

  function end(code: number, refusal: CallError | null): void {
    if (isOver) return;
    isOver = true;
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

  socket.addEventListener("open", () => {
    if (!isOver) socket.send(JSON.stringify({ type: "req", id: connectId, method: "connect", params }));
  });
  socket.addEventListener("message", ({ data }) => {
    if (isOver) return;
    const frame = readFrame(data);
    // An answer may have been in it: whoever waits for that is better off with a new socket.
    if (frame === null) return end(brokenCode, null);
    if (frame.type === "other") return;
    if (isGreeted) return listener.frame(frame);
    if (frame.type === "res" && frame.id === connectId) greeted(frame);
  });
  socket.addEventListener("error", () => end(brokenCode, null));
  socket.addEventListener("close", ({ code }) => {
    gone.resolve();
    end(code ?? brokenCode, null);
  });

  return {
    send: (text) => socket.send(text),
    drop: () => end(brokenCode, null),
    close: () => {
      isOver = true;
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
