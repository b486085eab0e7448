import { useMemo } from "react";
import { useCall } from "../connect/gateway.tsx";
import type { TreeEntry } from "../tree/tree-data.ts";
import type { TreeNode } from "../tree/tree-model.ts";
import { buildTree, siblingsOf, tipOf } from "../tree/tree-model.ts";
import type { SessionPlace } from "./session-place.ts";

/** What the address of a branch adds to that of its session: its last entry, or nothing for the active branch. */
export interface BranchQuery {
  readonly branch?: string;
}

/** An entry with siblings: its number among them, and where the branches of its neighbors end. */
export interface Fork {
  readonly position: number;
  readonly count: number;
  readonly previous: BranchQuery | null;
  readonly next: BranchQuery | null;
}

/** The entries of a session that have siblings, by ID. */
export function useForks(place: SessionPlace, entryCount: number): ReadonlyMap<string, Fork> {
  // Read again in steps, because a branch can only appear when entries do.
  const tree = useCall(
    "sessions.tree",
    { ...place, limit: 10_000 },
    { staleMs: entryCount > 2000 ? 60_000 : 5000 },
  );
  const { data } = tree;
  return useMemo(() => (data === undefined ? new Map() : findForks(data.entries, data.leafId)), [data]);
}

function findForks(entries: readonly TreeEntry[], leafId: string | null): ReadonlyMap<string, Fork> {
  const tree = buildTree(entries, leafId);
  const forks = new Map<string, Fork>();
  for (const node of tree.nodes.values()) {
    const siblings = siblingsOf(node, tree);
    if (siblings.length < 2) continue;
    forks.set(node.entry.id, {
      position: node.position,
      count: siblings.length,
      previous: branchOf(siblings[node.position - 2]),
      next: branchOf(siblings[node.position]),
    });
  }
  return forks;
}

function branchOf(sibling: TreeNode | undefined): BranchQuery | null {
  if (sibling === undefined) return null;
  return sibling.isActive ? {} : { branch: tipOf(sibling).entry.id };
}
