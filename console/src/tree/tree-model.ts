import { oneLine } from "../ui/plain-text.ts";
import { previewLine } from "../ui/preview.ts";
import type { TreeEntry } from "./tree-data.ts";

/** A conversation entry with its position in the tree. Bookkeeping entries are omitted. */
export interface TreeNode {
  readonly entry: TreeEntry;
  readonly parent: TreeNode | null;
  readonly children: TreeNode[];
  /** Whether the entry is on the active branch. */
  isActive: boolean;
  /** The entry's number among its siblings, starting at 1. */
  position: number;
}

export interface Tree {
  readonly nodes: ReadonlyMap<string, TreeNode>;
  /** The node of every entry. A bookkeeping entry maps to the node of the entry that it follows, if there is one. */
  readonly nodeAt: ReadonlyMap<string, TreeNode | null>;
  readonly roots: readonly TreeNode[];
  /** The last entry of the active branch. */
  readonly leaf: TreeNode | null;
  /** The ends of all branches, in log order. */
  readonly tips: readonly TreeNode[];
}

export function buildTree(entries: readonly TreeEntry[], leafId: string | null): Tree {
  const nodes = new Map<string, TreeNode>();
  const nodeAt = new Map<string, TreeNode | null>();
  const roots: TreeNode[] = [];
  for (const entry of entries) {
    const parent = entry.parentId === null ? null : (nodeAt.get(entry.parentId) ?? null);
    if (entry.bookkeeping) {
      nodeAt.set(entry.id, parent);
      continue;
    }
    const siblings = parent?.children ?? roots;
    const node: TreeNode = { entry, parent, children: [], isActive: false, position: siblings.length + 1 };
    siblings.push(node);
    nodes.set(entry.id, node);
    nodeAt.set(entry.id, node);
  }
  const leaf = leafId === null ? null : (nodeAt.get(leafId) ?? null);
  for (let node = leaf; node !== null; node = node.parent) node.isActive = true;
  const tips = [...nodes.values()].filter(({ children }) => children.length === 0);
  return { nodes, nodeAt, roots, leaf, tips };
}

/** The first entries of the inactive branches, in log order. */
export function otherBranches(tree: Tree): readonly TreeNode[] {
  return [...tree.nodes.values()].filter((node) => !node.isActive && siblingsOf(node, tree).length > 1);
}

export function siblingsOf(node: TreeNode, { roots }: Tree): readonly TreeNode[] {
  return node.parent?.children ?? roots;
}

/** Returns the role of an entry's message, otherwise the entry's type. */
export function roleOf({ entry }: TreeNode): string {
  return entry.role ?? entry.type;
}

/** Returns the beginning of an entry's text. Tool results are not treated as Markdown. */
export function previewOf(node: TreeNode, most: number): string {
  const isTool = /^(?:toolResult|bashExecution)$/.test(roleOf(node));
  return (isTool ? oneLine : previewLine)(node.entry.preview, most);
}

/** Returns the end of the branch through a node. Follows the active branch, otherwise the most recent continuation. */
export function tipOf(node: TreeNode): TreeNode {
  let tip = node;
  for (let next = nextOnBranch(tip); next !== undefined; next = nextOnBranch(tip)) tip = next;
  return tip;
}

/** The active branch ends at the leaf, even if an older branch once continued from there. */
function nextOnBranch({ children, isActive }: TreeNode): TreeNode | undefined {
  return isActive ? children.find((child) => child.isActive) : children.at(-1);
}

export function pathTo(node: TreeNode | null): readonly TreeNode[] {
  const path: TreeNode[] = [];
  for (let each = node; each !== null; each = each.parent) path.push(each);
  return path.reverse();
}

/** Returns the last entry that two branches share, and what follows it on each. */
export function compareBranches(a: TreeNode, b: TreeNode) {
  const left = pathTo(a);
  const right = pathTo(b);
  let shared = 0;
  while (shared < left.length && left[shared] === right[shared]) shared += 1;
  return { ancestor: left[shared - 1] ?? null, left: left.slice(shared), right: right.slice(shared) };
}

interface Placed {
  readonly node: TreeNode;
  readonly depth: number;
  /** For each column to the left, whether the line that passes through it belongs to the active branch. */
  readonly lines: readonly boolean[];
  /** Whether this is the first entry of a branch that does not continue in its parent's column. */
  readonly isBranchStart: boolean;
}

export type TreeRow = { readonly id: string } & (
  | ({ readonly kind: "entry" } & Placed)
  | ({ readonly kind: "stretch"; readonly count: number; readonly isOpen: boolean } & Placed)
);

const minStretch = 5;
const minTree = 40;

/**
 * Returns the rows from the root down. At a fork, the other branches come first, indented, followed by the branch that
 * continues in the same column.
 */
export function findRows(
  tree: Tree,
  opened: ReadonlySet<string>,
  kept: ReadonlySet<string>,
): readonly TreeRow[] {
  const placed = placeNodes(tree);
  if (placed.length < minTree) return placed.map(entryRow);
  const rows: TreeRow[] = [];
  for (let from = 0; from < placed.length; ) {
    let to = from;
    while (to < placed.length && isPlain(placed[to], placed[from], tree, kept)) to += 1;
    const first = placed[from];
    if (first === undefined) break;
    if (to - from < minStretch) {
      const end = Math.max(to, from + 1);
      rows.push(...placed.slice(from, end).map(entryRow));
      from = end;
      continue;
    }
    const id = `stretch ${first.node.entry.id}`;
    const isOpen = opened.has(id);
    rows.push({ kind: "stretch", id, count: to - from, isOpen, ...first });
    if (isOpen) rows.push(...placed.slice(from, to).map(entryRow));
    from = to;
  }
  return rows;
}

function entryRow(place: Placed): TreeRow {
  return { kind: "entry", id: place.node.entry.id, ...place };
}

/** Whether entries simply follow one another, without a fork, end, label or summary. */
function isPlain(
  place: Placed | undefined,
  first: Placed | undefined,
  tree: Tree,
  kept: ReadonlySet<string>,
): boolean {
  if (place === undefined || first === undefined || place.depth !== first.depth || place.isBranchStart)
    return false;
  const { entry, parent, children } = place.node;
  if (children.length !== 1 || parent === null || parent.children.length > 1) return false;
  if (place.node === tree.leaf || entry.label !== undefined || kept.has(entry.id)) return false;
  return entry.type !== "compaction" && entry.type !== "branch_summary";
}

function placeNodes({ roots }: Tree): readonly Placed[] {
  const placed: Placed[] = [];
  const work: Placed[] = [];
  const push = (nodes: readonly TreeNode[], depth: number, lines: readonly boolean[]) => {
    const main = nodes.find(({ isActive }) => isActive) ?? nodes.at(-1);
    if (main === undefined) return;
    // The stack is last in, first out, so the other branches are visited before the one that continues.
    work.push({ node: main, depth, lines, isBranchStart: false });
    const others = nodes.filter((node) => node !== main).reverse();
    for (const node of others) {
      work.push({ node, depth: depth + 1, lines: [...lines, main.isActive], isBranchStart: true });
    }
  };
  push(roots, 0, []);
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    placed.push(next);
    push(next.node.children, next.depth, next.lines);
  }
  return placed;
}
