import { createContext, useContext, useMemo } from "react";
import type { SessionTree } from "../tree/tree-data.ts";
import type { Tree, TreeNode } from "../tree/tree-model.ts";
import { siblingsOf, tipOf } from "../tree/tree-model.ts";

/** The query that selects a branch in its session's URL: the branch's last entry, or nothing for the active branch. */
export interface BranchQuery {
  readonly branch?: string;
}

/** An entry with siblings: its number among them, and the ends of its neighbors' branches. */
export interface Fork {
  readonly position: number;
  readonly count: number;
  readonly previous: BranchQuery | null;
  readonly next: BranchQuery | null;
}

/** A session's entries that have siblings, keyed by ID. */
export type Forks = ReadonlyMap<string, Fork>;

export const noForks: Forks = new Map();
const ForksContext = createContext<Forks | null>(null);
export const ForksProvider = ForksContext.Provider;

/** The forks of the displayed session, or `null` until they were read. */
export function useShownForks(): Forks | null {
  return useContext(ForksContext);
}

/** Returns a session's forks, or `null` until the first read of its tree has ended. */
export function useForks({ status, tree }: SessionTree): Forks | null {
  const isLoading = status === "loading";
  return useMemo(() => (isLoading ? null : findForks(tree)), [isLoading, tree]);
}

function findForks(tree: Tree): Forks {
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
