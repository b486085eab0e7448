import type { Static, TSchema } from "typebox";

/** What a token must be allowed. */
export type Scope = "read" | "write" | "tools" | "admin";

/** One method: what it takes, what it gives, and who may call it. HTTP, WebSocket, OpenAPI and the client follow from it. */
export interface Method<Params = unknown, Result = unknown> {
  readonly scope: Scope;
  /** One line. */
  readonly about: string;
  /** A closed object, with every limit in it. */
  readonly params: TSchema;
  readonly result: TSchema;
  /** Only for the compiler: declarations then hold plain types, and programs that call methods infer nothing from schemas. */
  readonly types?: { readonly params: Params; readonly result: Result };
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

export function method<P extends TSchema, R extends TSchema>(
  spec: Method & { readonly params: P; readonly result: R },
): Method<Static<P>, Static<R>> {
  return spec as Method<Static<P>, Static<R>>;
}
