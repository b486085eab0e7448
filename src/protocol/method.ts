import type { Schema } from "../core/schema.ts";

/** The permission that a token needs. */
export type Scope = "read" | "write" | "tools" | "admin";

/**
 * A method: its params, its result, and the permission to call it. HTTP, WebSocket, OpenAPI and the client are derived
 * from it.
 */
export interface Method<Params = unknown, Result = unknown> {
  readonly scope: Scope;
  /** A one-line description. */
  readonly about: string;
  /** A closed object that includes every limit. */
  readonly params: Schema<Params>;
  readonly result: Schema<Result>;
  /** `true` if the method requires a token for all users. */
  readonly needsAll?: true;
  /** Params that require the scope `admin`. */
  readonly adminOnly?: readonly string[];
  /** `true` if repeating the call has no further effect. */
  readonly isIdempotent?: true;
  /** `true` if the call removes something. */
  readonly isDestructive?: true;
  /**
   * Whether a call mostly waits, so that a stopping gateway aborts it instead of waiting for it. The params have not
   * been checked yet.
   */
  readonly isLong?: (params: Readonly<Record<string, unknown>>) => boolean;
  /** `true` if the method is only available on a socket. */
  readonly isSocketOnly?: true;
}

/** Infers a method's types from its schemas, so that declarations contain plain types. */
export function method<Params, Result>(spec: Method<Params, Result>): Method<Params, Result> {
  return spec;
}
