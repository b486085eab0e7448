import type { SkeinEventType } from "../../core/events.ts";
import type { GapPayload } from "../../protocol/frames.ts";
import type { Principal } from "../auth/principal.ts";

/** What somebody wants to hear of. */
export interface Wanted {
  /** Canonical; `null`: of every session that the token sees. A key that a reset moves on is heard of under its new session. */
  readonly keys: ReadonlySet<string> | null;
  /** As in `sessions.subscribe`; none: all. */
  readonly events: readonly string[];
  /** Whose: a user, `null` for the unnamed one, `"everybody"` for a token of all users that named none. */
  readonly of: { readonly userId: string | null } | "everybody";
  readonly agentId: string | null;
}

/** Where events go: a socket, or an answer of `/events`. */
export interface EventSink {
  /** A frame as JSON, made once for all who get the same. `seq` is where to resume behind it. */
  send(frame: string, seq: number, event: SkeinEventType | "gap"): void;
  /** Bytes that are not on their way yet. */
  backlog(): number;
  /** It does not read: `slowReader`. Nothing is sent to it any more. */
  drop(): void;
}

export interface Subscription {
  /** Behind which event it begins: what to resume with until one has come. */
  readonly seq: number;
  close(): void;
}

/** Every event of the gateway, numbered, with the last ones kept for whoever was cut off. */
export interface EventHub {
  readonly seq: number;
  /**
   * `after`: what came behind it is sent first, from the next turn of the event loop on; where some are no longer kept, a
   * `gap` before them. Who the principal is stays as it was: a token that ends is for the socket to notice.
   */
  subscribe(principal: Principal, wanted: Wanted, sink: EventSink, after?: number): Subscription;
  /** How many are open. */
  readonly size: number;
}

/** Numbers for metrics; all but the first only go up. */
export interface HubStats {
  readonly subscriptions: number;
  readonly sent: number;
  /** Events that were not sent to a reader because it was slow. */
  readonly dropped: number;
  /** Readers that were given up. */
  readonly droppedReaders: number;
}

export type GapReason = GapPayload["reason"];
