import type { Calls, EventFilter, EventStream } from "../../protocol/methods/calls.ts";
import { methodTable } from "../../protocol/methods/method-table.ts";
import type { Principal } from "../auth/principal.ts";
import { wantedFor } from "../events/wanted.ts";
import type { HandledMethod, HandlersOf, SkeinDeps } from "./contract.ts";
import { checkCall } from "./dispatch.ts";
import { localCalls, localPrincipal } from "./local-calls.ts";
import { LocalEvents } from "./local-events.ts";

/** Methods and events in this process, as `WatchedCalls` has them over a socket, for as many methods as there are handlers. */
export interface LocalWatchedCalls<M extends HandledMethod = HandledMethod> extends Calls<M> {
  events(filter?: EventFilter): EventStream;
  /** Ends every stream of events that is open. */
  close(): Promise<void>;
}

export function localWatchedCalls<M extends HandledMethod>(
  handlers: HandlersOf<M>,
  deps: SkeinDeps,
  principal: Principal = localPrincipal,
): LocalWatchedCalls<M> {
  const streams = new Set<LocalEvents>();
  const wanted = async (filter: EventFilter) => {
    const { params, call } = checkCall(methodTable["sessions.subscribe"], filter, principal);
    return wantedFor(params as EventFilter, principal, call.userId, deps);
  };
  return {
    ...localCalls(handlers, principal),
    events: (filter = {}) => {
      const stream = new LocalEvents(
        { subscribe: (listener) => deps.skein.subscribe(listener), wanted: () => wanted(filter) },
        (closed) => streams.delete(closed),
      );
      streams.add(stream);
      return stream;
    },
    close: async () => {
      for (const stream of [...streams]) stream.close();
    },
  };
}
