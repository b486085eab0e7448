import type { SkeinEventType } from "../core/events.ts";
import type { EventPayload } from "./events.ts";
import type { GapPayload } from "./frames.ts";
import type { MethodName, Params, Result } from "./method-table.ts";

/** A target for method calls: a gateway at the other end of a socket, or the handlers in this process. */
export interface Calls<M extends MethodName = MethodName> {
  /** Rejects with a `CallError` from a gateway, or in this process with the handler's own error; both have a `code`. */
  call<Name extends M>(
    method: Name,
    params: Params<Name>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Result<Name>>;
}

/** Method calls plus events. */
export interface WatchedCalls extends Calls {
  /** Streams events from now on. Its `ready` resolves once no later event can be missed. */
  events(filter?: EventFilter): EventStream;
}

/** A filter for events. All given conditions must hold; without any, all events that the token may see are sent. */
export interface EventFilter {
  /** Only events from these sessions, by any reference. */
  readonly keys?: readonly string[];
  /** Only events with these names, such as `run.ended` or `run.*`. */
  readonly events?: readonly string[];
  readonly agentId?: string;
  readonly userId?: string;
}

/** An event with its sequence number. A `gap` means that some events may be missing. */
export type ReceivedEvent =
  | {
      readonly [T in SkeinEventType]: {
        readonly event: T;
        readonly payload: EventPayload<T>;
        readonly seq: number;
      };
    }[SkeinEventType]
  /** Some events may be missing, so the client must read the current state again. */
  | { readonly event: "gap"; readonly payload: GapPayload; readonly seq: number };

/** A stream of events. Leaving the loop closes it. */
export interface EventStream extends AsyncIterable<ReceivedEvent> {
  readonly ready: Promise<void>;
  close(): void;
}
