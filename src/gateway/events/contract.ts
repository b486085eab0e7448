import type { EventFrame } from "../../protocol/frames.ts";
import type { Principal } from "../auth/principal.ts";

/** What somebody wants to hear of. */
export interface Wanted {
  /** Canonical; `null`: of every session that the token sees. */
  readonly keys: ReadonlySet<string> | null;
  /** As in `sessions.subscribe`; none: all. */
  readonly events: readonly string[];
  /** Whose: a user, `null` for the unnamed one, `"everybody"` for a token of all users that named none. */
  readonly of: { readonly userId: string | null } | "everybody";
  readonly agentId: string | null;
}

/** Where events go: a socket, or an answer of `/events`. */
export interface EventSink {
  /** A frame as JSON, made once for all who get the same. */
  send(frame: string, seq: number, event: EventFrame["event"]): void;
  /** Bytes that are not on their way yet. */
  backlog(): number;
  /** It does not read: `slowReader`. */
  drop(): void;
}

export interface Subscription {
  /** The last event before it. */
  readonly seq: number;
  close(): void;
}

/** Every event of the gateway, numbered, with the last ones kept for whoever was cut off. */
export interface EventHub {
  readonly seq: number;
  /** `after`: what came behind it is sent first; where some are no longer kept, a `gap` before them. */
  subscribe(principal: Principal, wanted: Wanted, sink: EventSink, after?: number): Subscription;
  /** How many are open, for metrics. */
  readonly size: number;
}
