import type { Scope, SessionReach, SessionRecord } from "./contract.ts";

/** What of a user's sessions an asker may reach, decided among all of them that are there. */

type Kin = Pick<SessionRecord, "key" | "agentId" | "meta">;

/** Whether a session is reached. `kin`: every session of the user, archived ones too, of whatever agent. */
export function reaching(
  reach: SessionReach | undefined,
  kin: Iterable<Kin>,
): (session: Pick<SessionRecord, "key" | "agentId">) => boolean {
  if (reach === undefined || reach.agentIds === "all") return () => true;
  const { treeOf, agentIds } = reach;
  const tree =
    treeOf === null
      ? new Set<string>()
      : reach.descendants === false
        ? new Set([treeOf])
        : treeFrom(treeOf, kin);
  return ({ key, agentId }) => tree.has(key) || agentIds.includes(agentId);
}

/** A lineage is not narrowed to the agent of a scope. */
export function kinOf({ userId }: Scope): Scope {
  return userId === undefined ? {} : { userId };
}

/** A key and those of all that descend from it; a lineage that goes round in a circle ends where it began. */
function treeFrom(key: string, kin: Iterable<Kin>): Set<string> {
  const children = Map.groupBy(kin, ({ meta }) => meta.spawnedBy);
  const tree = new Set([key]);
  for (const parent of tree) for (const child of children.get(parent) ?? []) tree.add(child.key);
  return tree;
}
