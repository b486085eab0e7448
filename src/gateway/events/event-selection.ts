import { SkeinError } from "../../core/errors.ts";
import type { SkeinEvent } from "../../core/events.ts";
import { parseAgentId } from "../../core/names.ts";
import type { Asker } from "../../core/references.ts";
import { keyOfReference } from "../../core/references.ts";
import type { EventFilter } from "../../protocol/calls.ts";
import type { App } from "../../sessions/app.ts";
import { resolveSession } from "../../sessions/find-session.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser } from "../auth/principal.ts";

/** The events that a client subscribes to. */
export interface EventSelection {
  /**
   * Canonical keys. `null` selects every session that the token can see. After a reset, a key selects its new session.
   */
  readonly keys: ReadonlySet<string> | null;
  /** Event types as in `sessions.subscribe`. An empty list selects all types. */
  readonly events: readonly string[];
  /**
   * One user, `null` for the unnamed user, or `"everybody"` if the token is for every user and the call did not name a
   * user.
   */
  readonly of: { readonly userId: string | null } | "everybody";
  readonly agentId: string | null;
}

/**
 * Resolves a filter. `keys` selects sessions of one user, and references in it are resolved for `agentId`. Without
 * `keys`, all of the user's sessions are selected, or only those of `agentId` if it is set. If the token is for every
 * user and the call does not name a user, the sessions of all users are selected.
 */
export async function selectEvents(
  { keys, events = [], agentId, userId: named }: EventFilter,
  principal: Principal,
  userId: string | null,
  app: Pick<App, "store" | "agents" | "config">,
): Promise<EventSelection> {
  const agent = parseAgentId(agentId ?? app.agents.first);
  if (keys === undefined || keys.length === 0) {
    const isEverybody = principal.user === everyUser && named === undefined;
    const of = isEverybody ? ("everybody" as const) : { userId };
    return { keys: null, events, of, agentId: agentId === undefined ? null : agent };
  }
  const asker: Asker = { agentId: agent, scope: app.config.session.scope };
  const found = new Set<string>();
  for (const reference of keys) found.add(await keyOf(reference, asker, userId, app));
  return { keys: found, events, of: { userId }, agentId: null };
}

/** The session of an event. Empty for an event of the gateway itself. */
export type EventSession = Partial<Pick<SkeinEvent, "userId" | "sessionKey" | "sessionId">>;

/**
 * Whether the event's session is selected. An event of the gateway itself is sent to every subscriber that did not
 * select sessions. Event types are checked elsewhere.
 */
export function isSelected(
  { keys, of, agentId }: EventSelection,
  { userId, sessionKey }: EventSession,
): boolean {
  if (sessionKey === undefined) return keys === null && agentId === null;
  if (of !== "everybody" && of.userId !== userId) return false;
  if (keys !== null && !keys.has(sessionKey)) return false;
  return agentId === null || sessionKey.startsWith(`agent:${agentId}:`);
}

/** A key can name a session that does not exist yet. Any other reference must resolve to a session. */
async function keyOf(
  reference: string,
  asker: Asker,
  userId: string | null,
  { store }: Pick<App, "store">,
): Promise<string> {
  const scope = userId === null ? {} : { userId };
  const found = await resolveSession(store.sessions, scope, asker, reference);
  const key = found?.key ?? keyOfReference(reference, asker);
  if (key !== null) return key;
  const advice =
    "Use sessions.list to find existing sessions. Only a key can name a session that does not exist yet";
  throw new SkeinError("not_found", { what: "Session", name: reference, advice });
}
