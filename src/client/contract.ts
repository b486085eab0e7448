import type { Calls, EventFilter, EventStream, WatchedCalls } from "../protocol/calls.ts";
import type { WireError, WireErrorCode } from "../protocol/errors.ts";
import type { HelloPayload } from "../protocol/frames.ts";
import type { WireEntry } from "../protocol/session-details.ts";

/** `connecting` means that a socket is being opened or reopened. `closed` means that the client will not reconnect. */
export type ClientState = "connecting" | "open" | "closed";

/** The WebSocket class in browsers, in Node and in the `ws` package. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  addEventListener(
    type: "open" | "error" | "message" | "close",
    listener: (event: { readonly type: string; readonly data?: unknown; readonly code?: number }) => void,
  ): void;
}
/** The constructor takes the URL as a string. */
export type SocketClass = new (url: never) => SocketLike;

/**
 * Options for a connection. `reconnect` sets the delay between attempts and how long to keep trying (`forMs`; by
 * default, forever). `false` disables reconnecting.
 */
export interface ConnectOptions {
  readonly token: string;
  /** The name of the client program, for the gateway's log. */
  readonly client?: { readonly name: string; readonly version?: string; readonly platform?: string };
  /**
   * The handshake timeout, 10 s by default. It doubles after each handshake that times out, up to eight times
   * this value.
   */
  readonly timeoutMs?: number;
  readonly reconnect?: false | { readonly minMs?: number; readonly maxMs?: number; readonly forMs?: number };
  /** Defaults to the global WebSocket. */
  readonly WebSocket?: SocketClass;
  /** The number of events that a stream buffers for a slow reader. Defaults to 1000. */
  readonly eventsHeld?: number;
}

/** Selects the entries to follow. */
export interface FollowOptions {
  /** Only entries after this one. Defaults to all entries. */
  readonly after?: string;
  readonly agentId?: string;
  /** Requires a token for all users. */
  readonly userId?: string;
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** A connection to a gateway. If it is lost, the client reconnects. */
export interface SkeinClient extends WatchedCalls {
  /** The gateway's most recent `hello`. */
  readonly hello: HelloPayload;
  readonly state: ClientState;
  /**
   * Calls the listener on every change. On `closed`, the listener receives the error that ended the connection, or
   * `null` after `close`. Returns a function that removes the listener.
   */
  onState(listener: (state: ClientState, error: CallError | null) => void): () => void;
  /**
   * Streams events from now on. The stream's own `call` uses the socket that carries the events. If there are several
   * gateways, other calls might reach a gateway that numbers its events differently. Call `chat.live` in this way to
   * compare its `seq` with those of the events.
   */
  events(filter?: EventFilter): EventStream & Calls;
  /**
   * Yields each of a session's entries once, in log order, and then each new entry as it is written, across reconnects.
   * Keeps following the session that `key` refers to at the time of the call, even after a reset moves the key to a new
   * session.
   */
  follow(key: string, options?: FollowOptions): AsyncIterable<WireEntry>;
  /**
   * Immediately checks the connection and the streams' connections. A connection that is waiting before its next
   * attempt reconnects immediately. An open connection is replaced unless the gateway responds within five seconds.
   * Call this method when a page or device wakes from sleep.
   */
  checkConnection(): void;
  /** Ends every stream without an error and rejects pending calls. */
  close(): Promise<void>;
}

/**
 * An error that the gateway returned, or the error for a call whose outcome is unknown. `retryable` is `true` if a
 * retry might succeed. `reason` is the more specific code from `docs/errors.md`, if there is one. `remedy` is the last
 * part of the message, which says what to do next, if there is one.
 *
 * @example
 * ```ts
 * import { CallError, type SkeinClient } from "skein/client";
 * async function nameOf(client: SkeinClient, key: string): Promise<string | null> {
 *   try {
 *     return (await client.call("sessions.get", { key })).displayName ?? null;
 *   } catch (error) {
 *     if (error instanceof CallError && error.code === "not_found") return null;
 *     throw error;
 *   }
 * }
 * ```
 */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly code: WireErrorCode;
  readonly remedy: string | null;
  readonly details: NonNullable<WireError["details"]>;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  readonly reason: string | null;

  constructor(
    { code, message, remedy, details = {}, retryable = false, retryAfterMs }: WireError,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.remedy = remedy ?? null;
    this.details = details;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs ?? null;
    this.reason = details.reason ?? null;
  }
}

/** Whether a retry might succeed because the gateway is starting, shutting down or overloaded. */
export function isTransient(error: unknown): error is CallError {
  return error instanceof CallError && (error.retryable || error.code === "rate_limited");
}

export function unavailable(message: string, retryable = true): CallError {
  return new CallError({ code: "unavailable", message, retryable });
}
