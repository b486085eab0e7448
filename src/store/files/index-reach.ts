import type { SessionReach } from "../contract.ts";

/** A condition on a row of the index's `sessions`, with the values of its question marks. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly string[];
}

/** A key and those of all that descend from it. `UNION` drops what is there already, so a circle ends. */
const treeKeys = `WITH RECURSIVE tree (key) AS (
    VALUES (?) UNION
    SELECT child.key FROM tree JOIN sessions AS child ON child.user = ? AND child.spawned_by = tree.key
  ) SELECT key FROM tree`;

/** What a reach lets through; `null`: everything of the user. */
export function reachCondition(userId: string, reach: SessionReach | undefined): Condition | null {
  if (reach === undefined || reach.agentIds === "all") return null;
  const { treeOf, agentIds } = reach;
  const sql: string[] = [];
  const values: string[] = [];
  if (treeOf !== null && reach.descendants === false) {
    sql.push("key = ?");
    values.push(treeOf);
  } else if (treeOf !== null) {
    sql.push(`uid IN (SELECT uid FROM sessions WHERE user = ? AND key IN (${treeKeys}))`);
    values.push(userId, treeOf, userId);
  }
  if (agentIds.length > 0) {
    sql.push("agent IN (SELECT value FROM json_each(?))");
    values.push(JSON.stringify(agentIds));
  }
  return { sql: sql.length === 0 ? "FALSE" : `(${sql.join(" OR ")})`, values };
}
