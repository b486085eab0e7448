import type { AccessSettings } from "../../src/access/visibility/access-policy.ts";
import type { Scope, SessionQuery, SessionReach, SessionRecord, Store } from "../../src/entry-store.ts";
import type { Asker, SessionAccess } from "../../src/sessions/session-access.ts";
import { createSessionAccess } from "../../src/sessions/session-access.ts";

/** Visibility over a store, and the same rules in their simplest form. */

export const scopeOfUser = (userId: string | null): Scope => (userId === null ? {} : { userId });

/** Returns every live session of a user, including archived and special ones. */
export async function allOf(
  { sessions }: Pick<Store, "sessions">,
  userId: string | null,
  query: SessionQuery = { includeUnknown: true },
): Promise<SessionRecord[]> {
  const every = { limit: 1000, includeGlobal: true, ...query };
  const scope = scopeOfUser(userId);
  const pages = [await sessions.list(scope, every), await sessions.list(scope, { ...every, archived: true })];
  return pages.flatMap((page) => [...page.sessions]);
}

export function accessOver(
  store: Pick<Store, "sessions">,
  settings: AccessSettings,
  scope: "per-sender" | "global" = "per-sender",
): SessionAccess {
  return createSessionAccess({ store, settings: () => settings, scope });
}

/** Returns a user's sessions within a reach. Searches downward repeatedly until nothing new is found. */
export function within(reach: SessionReach, records: readonly SessionRecord[]): Set<string> {
  const tree = new Set(reach.treeOf === null ? [] : [reach.treeOf]);
  for (let before = -1; reach.descendants !== false && tree.size !== before; ) {
    before = tree.size;
    for (const { key, meta } of records) if (tree.has(meta.spawnedBy ?? "")) tree.add(key);
  }
  const isOfAgent = (agentId: string) => reach.agentIds === "all" || reach.agentIds.includes(agentId);
  const inside = records.filter(({ key, agentId }) => tree.has(key) || isOfAgent(agentId));
  return new Set(inside.map(({ key }) => key).filter((key) => key !== "unknown"));
}

export function askerFrom(session: SessionRecord, sandboxed = session.meta.sandboxed === true): Asker {
  return { userId: session.userId, agentId: session.agentId, session, sandboxed };
}
