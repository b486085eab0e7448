import type { WatchedCalls } from "../protocol/calls.ts";
import type { WireError, WireErrorCode } from "../protocol/errors.ts";
import type { HelloPayload } from "../protocol/frames.ts";
import type { WireEntry } from "../protocol/session-details.ts";

/** `connecting`: a socket is being opened, for the first time or again. `closed`: there will be no other. */
export type ClientState = "connecting" | "open" | "closed";

/** The WebSocket of browsers, of Node, and of the package `ws`. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  addEventListener(
    type: "open" | "error" | "message" | "close",
    listener: (event: { readonly type: string; readonly data?: unknown; readonly code?: number }) => void,
  ): void;
}
/** Constructed with the URL as a string. */
export type SocketClass = new (url: never) => SocketLike;

/**
 * The options of a connection. `reconnect` sets the delay between attempts and for how long to try (`forMs`, forever if
 * absent); `false` never reconnects.
 */
export interface ConnectOptions {
  readonly token: string;
  /** The name of the program, for the gateway's log. */
  readonly client?: { readonly name: string; readonly version?: string; readonly platform?: string };
  /** The handshake timeout, 10 s by default. It grows up to eightfold after handshakes that timed out. */
  readonly timeoutMs?: number;
  readonly reconnect?: false | { readonly minMs?: number; readonly maxMs?: number; readonly forMs?: number };
  /** Default: the global WebSocket. */
  readonly WebSocket?: SocketClass;
  /** How many events a stream buffers for a slow reader. 1000 by default. */
  readonly eventsHeld?: number;
}

/** Which entries to follow. */
export interface FollowOptions {
  /** Only entries after this one. Default: from the first. */
  readonly after?: string;
  readonly agentId?: string;
  /** Only with a token for all users. */
  readonly userId?: string;
  /** Ends the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** A connection to a gateway that reconnects when it breaks. */
export interface SkeinClient extends WatchedCalls {
  /** The last `hello` of the gateway. */
  readonly hello: HelloPayload;
  readonly state: ClientState;
  /**
   * Called on every change, and for `closed` with the error that ended it, unless `close` did. Returns a function that
   * removes the listener.
   */
  onState(listener: (state: ClientState, error: CallError | null) => void): () => void;
  /**
   * A session's entries in the order of its log, each once, and then each new one as it is written, across reconnects.
   * It stays with the session that `key` means now, even after a reset.
   */
  follow(key: string, options?: FollowOptions): AsyncIterable<WireEntry>;
  /** Ends every stream without an error and rejects pending calls. */
  close(): Promise<void>;
}

/**
 * An error that the gateway returned, or a call whose outcome is unknown. `retryable`: a retry may succeed; `reason`:
 * the more specific code from `docs/errors.md`, if there is one.
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

/** A retry may succeed: the gateway is starting, shutting down or overloaded. */
export function isTransient(error: unknown): error is CallError {
  return error instanceof CallError && (error.retryable || error.code === "rate_limited");
}

export function unavailable(message: string, retryable = true): CallError {
  return new CallError({ code: "unavailable", message, retryable });
}
