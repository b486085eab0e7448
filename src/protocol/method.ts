import type { Schema } from "../core/schema.ts";

/** The permission that a token needs. */
export type Scope = "read" | "write" | "tools" | "admin";

/** A method: its params, its result, and who may call it. HTTP, WebSocket, OpenAPI and the client are derived from it. */
export interface Method<Params = unknown, Result = unknown> {
  readonly scope: Scope;
  /** A one-line description. */
  readonly about: string;
  /** A closed object, with every limit in it. */
  readonly params: Schema<Params>;
  readonly result: Schema<Result>;
  /** Only with a token for all users. */
  readonly needsAll?: true;
  /** Params that only a token with the scope `admin` may use. */
  readonly adminOnly?: readonly string[];
  /** Repeating the call has no further effect. */
  readonly isIdempotent?: true;
  /** The call removes something. */
  readonly isDestructive?: true;
  /**
   * Whether a call mostly waits, so that a stopping gateway aborts it instead of waiting for it. The params are not checked yet.
   */
  readonly isLong?: (params: Readonly<Record<string, unknown>>) => boolean;
  /** Only available on a socket. */
  readonly isSocketOnly?: true;
}

/** Infers the types of a method from its schemas, so that declarations contain plain types. */
export function method<Params, Result>(spec: Method<Params, Result>): Method<Params, Result> {
  return spec;
}
