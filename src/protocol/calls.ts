import type { SkeinEventType } from "../core/events.ts";
import type { EventPayload } from "./events.ts";
import type { GapPayload } from "./frames.ts";
import type { MethodName, Params, Result } from "./method-table.ts";

/** A target for method calls: a gateway at the other end of a socket, or the handlers in this process. */
export interface Calls<M extends MethodName = MethodName> {
  /** Rejects with a `CallError` of a gateway, in this process with what the handler threw; both have a `code`. */
  call<Name extends M>(
    method: Name,
    params: Params<Name>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Result<Name>>;
}

/** Calls together with events. */
export interface WatchedCalls extends Calls {
  /** Events from now on. Its `ready` resolves once no later event can be missed. */
  events(filter?: EventFilter): EventStream;
}

/** A filter of events. All given conditions must hold; without any, all events that the token sees are sent. */
export interface EventFilter {
  /** Only events of these sessions, by any reference. */
  readonly keys?: readonly string[];
  /** Only these events, such as `run.ended` or `run.*`. */
  readonly events?: readonly string[];
  readonly agentId?: string;
  readonly userId?: string;
}

/** An event with its increasing number. `gap`: some events may be missing. */
export type ReceivedEvent =
  | {
      readonly [T in SkeinEventType]: {
        readonly event: T;
        readonly payload: EventPayload<T>;
        readonly seq: number;
      };
    }[SkeinEventType]
  /** Some events may be missing: read the current state again. */
  | { readonly event: "gap"; readonly payload: GapPayload; readonly seq: number };

/** A stream of events. Leaving the loop closes it. */
export interface EventStream extends AsyncIterable<ReceivedEvent> {
  readonly ready: Promise<void>;
  close(): void;
}
