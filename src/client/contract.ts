import type { WireError, WireErrorCode } from "../protocol/errors.ts";
import type { HelloPayload } from "../protocol/frames.ts";
import type { WatchedCalls } from "../protocol/methods/calls.ts";
import type { WireEntry } from "../protocol/session-details.ts";

/** Where a client stands: a socket is being opened, for the first time or again; it is open; there will be no other. */
export type ClientState = "connecting" | "open" | "closed";

/** As browsers and Node have it, and the package `ws`. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  addEventListener(
    type: "open" | "error" | "message" | "close",
    listener: (event: { readonly type: string; readonly data?: unknown; readonly code?: number }) => void,
  ): void;
}
/** It is given the address as a text. */
export type SocketClass = new (url: never) => SocketLike;

/**
 * How a client connects. `reconnect` says how long to wait between tries, and for how long to try at all (`forMs`; without
 * end if left out); `false`: the first socket is the only one.
 */
export interface ConnectOptions {
  readonly token: string;
  /** Who connects, for the gateway's log. */
  readonly client?: { readonly name: string; readonly version?: string; readonly platform?: string };
  /** How long a handshake may take, 10 s if left out; up to eight times as long after others that took longer. */
  readonly timeoutMs?: number;
  readonly reconnect?: false | { readonly minMs?: number; readonly maxMs?: number; readonly forMs?: number };
  /** Left out: the one of the browser or of Node. */
  readonly WebSocket?: SocketClass;
  /** How many events a stream holds for a reader that is busy. 1000 if left out. */
  readonly eventsHeld?: number;
}

/** What of a session is followed. */
export interface FollowOptions {
  /** Only what comes behind this entry. Left out: from the first one on. */
  readonly after?: string;
  readonly agentId?: string;
  /** Only with a token for all users. */
  readonly userId?: string;
  /** Ends it, with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** A connection to a gateway that reconnects when it breaks. */
export interface SkeinClient extends WatchedCalls {
  /** What the gateway said, the last time. */
  readonly hello: HelloPayload;
  readonly state: ClientState;
  /** Told of every change; of `closed` with the error that ended it, unless `close` did. Returns a function that ends this. */
  onState(listener: (state: ClientState, error: CallError | null) => void): () => void;
  /**
   * A session's entries in the order of its log, each once, and then each new one as it is written, whatever happens to the
   * connection meanwhile. It stays with the session that `key` means now, also when the key moves on to a new one.
   */
  follow(key: string, options?: FollowOptions): AsyncIterable<WireEntry>;
  /** Ends every stream, without an error; calls that are not answered reject. */
  close(): Promise<void>;
}

/**
 * What a gateway refused, or why nobody knows what it did. `retryable`: the same again may do better; `reason`: the code
 * of `docs/errors.md` behind this one, where that says more.
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
  readonly details: NonNullable<WireError["details"]>;
  readonly retryable: boolean;
  readonly retryAfterMs: number | null;
  readonly reason: string | null;

  constructor(
    { code, message, details = {}, retryable = false, retryAfterMs }: WireError,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.details = details;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs ?? null;
    this.reason = details.reason ?? null;
  }
}

/** The same later may do better: the gateway is starting, stopping or has too much to do. */
export function isTransient(error: unknown): error is CallError {
  return error instanceof CallError && (error.retryable || error.code === "rate_limited");
}

export function unavailable(message: string, retryable = true): CallError {
  return new CallError({ code: "unavailable", message, retryable });
}
