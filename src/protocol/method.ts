import type { Schema } from "../core/schema.ts";

/** What a token must be allowed. */
export type Scope = "read" | "write" | "tools" | "admin";

/** One method: what it takes, what it gives, and who may call it. HTTP, WebSocket, OpenAPI and the client follow from it. */
export interface Method<Params = unknown, Result = unknown> {
  readonly scope: Scope;
  /** One line. */
  readonly about: string;
  /** A closed object, with every limit in it. */
  readonly params: Schema<Params>;
  readonly result: Schema<Result>;
  /** Only with a token for all users. */
  readonly needsAll?: true;
  /** Params that only a token with the scope `admin` may give. */
  readonly adminOnly?: readonly string[];
  /** The same call again changes nothing further. */
  readonly isIdempotent?: true;
  /** Takes something away that was there. */
  readonly isDestructive?: true;
  /**
   * Whether a call does little but wait for something to happen, so that a gateway that stops need not wait for it: its signal
   * comes then. Params may be anything yet.
   */
  readonly isLong?: (params: Readonly<Record<string, unknown>>) => boolean;
  /** Means something on a socket alone. */
  readonly isSocketOnly?: true;
}

/** Infers the types of a method from its schemas, so that declarations hold plain types. */
export function method<Params, Result>(spec: Method<Params, Result>): Method<Params, Result> {
  return spec;
}
