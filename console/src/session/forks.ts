import { createContext, useContext, useMemo } from "react";
import type { SessionPlace } from "../paths.ts";
import type { TreeEntry } from "../tree/tree-data.ts";
import { useTree } from "../tree/tree-data.ts";
import type { TreeNode } from "../tree/tree-model.ts";
import { buildTree, siblingsOf, tipOf } from "../tree/tree-model.ts";

/** Returns what a branch's URL adds to its session's URL: the last entry, or nothing for the active branch. */
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

/** Reads a session's forks and keeps them up to date. Returns `null` until the first read has ended. */
export function useForks(place: SessionPlace): Forks | null {
  const { status, entries, leafId } = useTree(place);
  const isLoading = status === "loading";
  return useMemo(() => (isLoading ? null : findForks(entries, leafId)), [isLoading, entries, leafId]);
}

function findForks(entries: readonly TreeEntry[], leafId: string | null): Forks {
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
