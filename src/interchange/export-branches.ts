import type { Entry } from "../core/entries.ts";
import type { SessionTree } from "../core/tree.ts";
import { isShown } from "./export-shown.ts";

/** One branch as it is read: from where it leaves another one to its end. */
export interface Branch {
  /** From 1 up; 1 is the active one. */
  readonly number: number;
  /** The entry that it leaves from, one that is shown; `null` when it begins at the root. */
  readonly from: string | null;
  readonly entries: readonly Entry[];
}

export interface Branches {
  readonly list: readonly Branch[];
  /** The branches that leave from an entry, or from before everything (`""`), beside the one it is in. */
  readonly leaving: ReadonlyMap<string, readonly number[]>;
}

/**
 * The active branch, then what the others have of their own, in the order of the file; each entry stands in one of
 * them. Where several go on, the branch follows the latest. Branches of nothing but bookkeeping are left out.
 */
export function branchesOf(tree: SessionTree): Branches {
  const covered = new Set<string>();
  const list: Branch[] = [];
  const leaving = new Map<string, number[]>();
  const add = (entries: readonly Entry[]) => {
    for (const { id } of entries) covered.add(id);
    const [first] = entries;
    if (list.length > 0 && !entries.some(isShown)) return;
    const from = first === undefined ? null : shownAbove(tree, first);
    const number = list.length + 1;
    list.push({ number, from, entries });
    if (number === 1) return;
    const known = leaving.get(from ?? "");
    if (known === undefined) leaving.set(from ?? "", [number]);
    else known.push(number);
  };
  add(tree.path());
  for (const entry of tree.entries()) if (!covered.has(entry.id)) add(downFrom(tree, entry, covered));
  return { list, leaving };
}

/** From an entry to the end of the latest branch behind it. */
function downFrom(tree: SessionTree, first: Entry, covered: ReadonlySet<string>): Entry[] {
  const entries: Entry[] = [];
  for (let entry: Entry | undefined = first; entry !== undefined; ) {
    entries.push(entry);
    entry = tree.children(entry.id).findLast(({ id }) => !covered.has(id));
  }
  return entries;
}

function shownAbove(tree: SessionTree, entry: Entry): string | null {
  let above = tree.parentOf(entry.id);
  while (above !== null && !isShown(above)) above = tree.parentOf(above.id);
  return above?.id ?? null;
}
