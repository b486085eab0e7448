import type { ContextState } from "../../core/context.ts";
import { stateAfter } from "../../core/context.ts";
import type { Entry } from "../../core/entries.ts";
import { isBookkeeping } from "../../core/entries.ts";
import type { SessionTree } from "../../core/tree.ts";

/**
 * The positions stored with an entry. With them, the branch that ends at the entry is read without the entries before
 * its context.
 */
export interface EntryPlace {
  readonly seq: number;
  /** Where the chain of consecutive entries that contains this one starts. */
  readonly chainSeq: number;
  /** The parent of the chain's first entry, or `null` if it is a root. */
  readonly upSeq: number | null;
  /** The nearest conversation entry, going up from this one. */
  readonly leafSeq: number | null;
  /** Where the context starts, or `null` if the branch has no compaction. */
  readonly contextSeq: number | null;
  readonly modelSeq: number | null;
  readonly thinkingSeq: number | null;
  readonly systemSeq: number | null;
}

const unset: ContextState = { model: null, thinkingLevel: "", system: null };

/** Returns the place of an entry under a parent. `keptSeq` is where a compaction's context starts. */
export function placeAfter(
  parent: EntryPlace | null,
  entry: Entry,
  seq: number,
  keptSeq: number | null,
): EntryPlace {
  const isNext = parent !== null && parent.seq === seq - 1;
  const set = stateAfter(unset, entry);
  return {
    seq,
    chainSeq: isNext ? parent.chainSeq : seq,
    upSeq: isNext ? parent.upSeq : (parent?.seq ?? null),
    leafSeq: isBookkeeping(entry) ? (parent?.leafSeq ?? null) : seq,
    contextSeq: entry.type === "compaction" ? (keptSeq ?? seq) : (parent?.contextSeq ?? null),
    modelSeq: set.model === null ? (parent?.modelSeq ?? null) : seq,
    thinkingSeq: set.thinkingLevel === "" ? (parent?.thinkingSeq ?? null) : seq,
    systemSeq: set.system === null ? (parent?.systemSeq ?? null) : seq,
  };
}

export interface TreePlaces {
  readonly byId: ReadonlyMap<string, EntryPlace>;
  /** Whether an entry comes before its parent. Such a session is always read as a whole. */
  readonly isOdd: boolean;
}

/** Returns the places of all entries of a tree. */
export function placesInTree(tree: SessionTree): TreePlaces {
  const byId = new Map<string, EntryPlace>();
  let isOdd = false;
  for (const entry of tree.entries()) {
    const parentId = tree.parentOf(entry.id)?.id;
    const parent = parentId === undefined ? null : (byId.get(parentId) ?? null);
    if (parentId !== undefined && parent === null) isOdd = true;
    byId.set(entry.id, placeAfter(parent, entry, byId.size, keptSeqIn(tree, entry, byId)));
  }
  return { byId, isOdd };
}

/**
 * Returns the position of the first entry that a compaction keeps, or `null` if that entry is not on the compaction's
 * branch.
 */
function keptSeqIn(tree: SessionTree, entry: Entry, byId: ReadonlyMap<string, EntryPlace>): number | null {
  if (entry.type !== "compaction" || entry.firstKeptEntryId === undefined) return null;
  for (let above = tree.parentOf(entry.id); above !== null; above = tree.parentOf(above.id)) {
    if (above.id === entry.firstKeptEntryId) return byId.get(above.id)?.seq ?? null;
  }
  return null;
}
