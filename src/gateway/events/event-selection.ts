import { SkeinError } from "../../core/errors.ts";
import { parseAgentId } from "../../core/names.ts";
import type { Asker } from "../../core/references.ts";
import { keyOfReference } from "../../core/references.ts";
import type { EventFilter } from "../../protocol/calls.ts";
import type { App } from "../../sessions/app.ts";
import { resolveSession } from "../../sessions/find-session.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser } from "../auth/principal.ts";

/** Which events a client wants. */
export interface EventSelection {
  /** Canonical keys; `null` selects every session that the token sees. After a reset, a key selects its new session. */
  readonly keys: ReadonlySet<string> | null;
  /** As in `sessions.subscribe`; empty selects all. */
  readonly events: readonly string[];
  /** One user, `null` for the unnamed user, or `"everybody"` for a token of all users that did not name one. */
  readonly of: { readonly userId: string | null } | "everybody";
  readonly agentId: string | null;
}

/**
 * Resolves a filter. With `keys`, it selects those sessions of one user, and `agentId` says how references are read.
 * Without, it selects all sessions of the user, or of everybody for a token of all users that does not name one, and
 * `agentId` narrows them down.
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

/** Whether the event's session is selected; event types are checked elsewhere. */
export function isSelected(
  { keys, of, agentId }: EventSelection,
  { userId, sessionKey }: { readonly userId: string | null; readonly sessionKey: string },
): boolean {
  if (of !== "everybody" && of.userId !== userId) return false;
  if (keys !== null && !keys.has(sessionKey)) return false;
  return agentId === null || sessionKey.startsWith(`agent:${agentId}:`);
}

/** A key may name a session that does not exist yet; any other name must resolve. */
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
  const advice = "sessions.list shows the existing sessions; a key may be named before its session exists";
  throw new SkeinError("not_found", { what: "Session", name: reference, advice });
}
