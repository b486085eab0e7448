import type { SkeinEventType } from "../../core/events.ts";
import type { EventPayload } from "../events.ts";
import type { GapPayload } from "../frames.ts";
import type { MethodName, Params, Result } from "./method-table.ts";

/** Whoever takes calls of methods: a gateway at the other end of a socket, or the handlers in this process. */
export interface Calls<M extends MethodName = MethodName> {
  /** Rejects with a `CallError` of a gateway, in this process with what the handler threw; both have a `code`. */
  call<Name extends M>(
    method: Name,
    params: Params<Name>,
    options?: { readonly signal?: AbortSignal },
  ): Promise<Result<Name>>;
}

/** The same, with what happens meanwhile. */
export interface WatchedCalls extends Calls {
  /** Events from now on. Its `ready` resolves once nothing that happens from then on is missed. */
  events(filter?: EventFilter): EventStream;
}

/** Which events are wanted: those that fit all that is said; of everything that the token sees, if nothing is. */
export interface EventFilter {
  /** Of these sessions alone, by any reference. */
  readonly keys?: readonly string[];
  /** Of these kinds alone: `run.ended`, `run.*`. */
  readonly events?: readonly string[];
  readonly agentId?: string;
  readonly userId?: string;
}

/** An event as it came, with its number, which only goes up. `gap`: some may be missing. */
export type ReceivedEvent =
  | {
      readonly [T in SkeinEventType]: {
        readonly event: T;
        readonly payload: EventPayload<T>;
        readonly seq: number;
      };
    }[SkeinEventType]
  /** Some may be missing: what is shown has to be read anew. */
  | { readonly event: "gap"; readonly payload: GapPayload; readonly seq: number };

/** Events as they come. Leaving the loop closes it. */
export interface EventStream extends AsyncIterable<ReceivedEvent> {
  readonly ready: Promise<void>;
  close(): void;
}
