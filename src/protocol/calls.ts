import type { EventPayload, WireEventType } from "./events.ts";
import type { GapPayload } from "./frames.ts";
import type { MethodName, Params, Result } from "./method-table.ts";

/** Calls methods, either on a gateway over a socket or on the handlers in this process. */
export interface Calls<M extends MethodName = MethodName> {
  /**
   * Rejects with a `CallError` if a gateway returned the error, otherwise with the handler's own error. Both have a
   * `code`.
   */
  call<Name extends M>(
    method: Name,
    params: Params<Name>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Result<Name>>;
}

/** Method calls plus events. */
export interface WatchedCalls extends Calls {
  /** Streams events from now on. `ready` resolves once every later event is guaranteed to arrive. */
  events(filter?: EventFilter): EventStream;
}

/**
 * A filter for events. An event must meet all conditions. An empty filter matches every event that the token can see.
 */
export interface EventFilter {
  /** Only events from these sessions, given as any kind of reference. */
  readonly keys?: readonly string[];
  /** Only events with these names, such as `run.ended` or `run.*`. */
  readonly events?: readonly string[];
  readonly agentId?: string;
  readonly userId?: string;
}

/** An event with its sequence number. A `gap` means that some events might be missing. */
export type ReceivedEvent =
  | {
      readonly [T in WireEventType]: {
        readonly event: T;
        readonly payload: EventPayload<T>;
        readonly seq: number;
      };
    }[WireEventType]
  /** Sent when events might be missing. The client must then reload the current state. */
  | { readonly event: "gap"; readonly payload: GapPayload; readonly seq: number };

/** A stream of events. Breaking out of the loop closes it. */
export interface EventStream extends AsyncIterable<ReceivedEvent> {
  readonly ready: Promise<void>;
  close(): void;
}
