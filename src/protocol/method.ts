import type { Schema } from "../core/schema.ts";

export type Scope = "read" | "write" | "tools" | "admin";

/**
 * A method: its params, its result, and the permission it requires. The HTTP, WebSocket and OpenAPI interfaces and the
 * client are derived from this definition.
 */
export interface Method<Params = unknown, Result = unknown> {
  readonly scope: Scope;
  /** A one-line description. */
  readonly about: string;
  /** Must reject unknown fields and include every limit. */
  readonly params: Schema<Params>;
  readonly result: Schema<Result>;
  /** `true` if the method requires a token for all users. */
  readonly needsAll?: true;
  /** Params that require the scope `admin`. */
  readonly adminOnly?: readonly string[];
  /** `true` if retrying the call has no further effect. */
  readonly isIdempotent?: true;
  /** `true` if the call deletes data. */
  readonly isDestructive?: true;
  /**
   * Whether a call spends most of its time waiting. When a gateway stops, it aborts such calls. The params have not
   * been validated yet.
   */
  readonly isLong?: (params: Readonly<Record<string, unknown>>) => boolean;
  /** `true` if the method is available only on a socket. */
  readonly isSocketOnly?: true;
}

/** Infers a method's types from its schemas so that the type declarations contain plain types. */
export function method<Params, Result>(spec: Method<Params, Result>): Method<Params, Result> {
  return spec;
}
