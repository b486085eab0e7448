import type { SessionReach } from "../contract.ts";

/** A condition on rows of the index's `sessions`, with the values of its question marks. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly string[];
  /** `sessions`, by the index that is right for it: a tree is small beside all that a user has. */
  readonly table: string;
}

/**
 * A key and those of all that descend from it. `UNION` drops what is there already, so a circle ends; `CROSS JOIN` goes from
 * parents to children, and not through all children for each parent.
 */
const treeKeys = `WITH RECURSIVE tree (key) AS (
    VALUES (?) UNION
    SELECT child.key FROM tree CROSS JOIN sessions AS child ON child.user = ? AND child.spawned_by = tree.key
  ) SELECT key FROM tree`;

/** What a reach lets through; `null`: everything of the user. */
export function reachCondition(userId: string, reach: SessionReach | undefined): Condition | null {
  if (reach === undefined || reach.agentIds === "all") return null;
  const { agentIds } = reach;
  const tree = treeCondition(userId, reach);
  if (agentIds.length === 0) return tree ?? { sql: "FALSE", values: [], table: "sessions" };
  const agents = "agent IN (SELECT value FROM json_each(?))";
  const named = JSON.stringify(agentIds);
  if (tree === null) return { sql: agents, values: [named], table: "sessions" };
  return {
    sql: `(${agents} OR uid IN (SELECT uid FROM ${tree.table} WHERE user = ? AND ${tree.sql}))`,
    values: [named, userId, ...tree.values],
    table: "sessions",
  };
}

function treeCondition(userId: string, { treeOf, descendants }: SessionReach): Condition | null {
  const table = "sessions INDEXED BY sessions_key";
  if (treeOf === null) return null;
  if (descendants === false) return { sql: "key = ?", values: [treeOf], table };
  return { sql: `key IN (${treeKeys})`, values: [treeOf, userId], table };
}
