import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import type { Calls, EventFilter, EventStream } from "../../protocol/methods/calls.ts";
import { contextMeant } from "../../sessions/skein/speak-to.ts";
import type { Principal } from "../auth/principal.ts";
import type { HandledMethod, HandlersOf, SkeinDeps } from "./contract.ts";
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
  const source = {
    subscribe: deps.skein.subscribe.bind(deps.skein),
    keysOf: (references: readonly string[], whose: EventFilter) =>
      Promise.all(references.map((reference) => keyOf(deps, reference, whose))),
  };
  return {
    ...localCalls(handlers, principal),
    events: (filter = {}) => {
      const stream = new LocalEvents(source, filter, (closed) => streams.delete(closed));
      streams.add(stream);
      return stream;
    },
    close: async () => {
      for (const stream of [...streams]) stream.close();
    },
  };
}

async function keyOf(deps: SkeinDeps, reference: string, whose: EventFilter): Promise<string> {
  const { store, config, defaultAgentId, newId } = deps;
  const { agentId = defaultAgentId, userId = null } = whose;
  const asker = { agentId: parseAgentId(agentId), scope: config.session.scope };
  const meant = await contextMeant(store, { userId, asker, newId }, reference);
  if (meant !== null) return meant.sessionKey;
  const advice = "sessions.list shows which there are";
  throw new SkeinError("not_found", { what: "Session", name: reference, advice });
}
