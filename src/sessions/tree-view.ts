import type { Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type { Steps } from "../core/slices.ts";
import { atOnce } from "../core/slices.ts";
import type { SessionTree } from "../core/tree.ts";
import type { TreePayload, TreeRow } from "../protocol/session-views.ts";
import { sessionKeyOf } from "./history.ts";
import { previewOf } from "./preview.ts";

/** A row takes as long as to read so much. */
const rowBytes = 256;

/** Which rows of a tree, in the order of the file; everything left out: all. */
export interface TreeRange {
  readonly after?: string;
  readonly limit?: number;
  /** An entry as its reader may see it. */
  seen?(entry: Entry): Entry;
}

/** Entries of a session, with their place in the tree. A store knows the key better than the file: it may change. */
export function treeView(tree: SessionTree, key = sessionKeyOf(tree), range: TreeRange = {}): TreePayload {
  return atOnce(viewingTree(tree, key, range));
}

/** The same row by row, for what may be long. */
export function* viewingTree(
  tree: SessionTree,
  key: string | null,
  { after, limit = Number.POSITIVE_INFINITY, seen = (entry) => entry }: TreeRange = {},
): Steps<TreePayload> {
  const active = new Set(tree.path().map((entry) => entry.id));
  const all = [...tree.entries()];
  const from = after === undefined ? 0 : placeOf(all, after) + 1;
  const page = all.slice(from, from + limit);
  const last = from + page.length < all.length ? page.at(-1) : undefined;
  const entries: TreeRow[] = [];
  for (const entry of page) {
    const row = rowOf(tree, entry, active.has(entry.id), previewOf(seen(entry)));
    entries.push(row);
    yield rowBytes + row.preview.length;
  }
  return {
    ...(key === null ? {} : { sessionKey: key }),
    sessionId: tree.header.id,
    ...(tree.name === null ? {} : { name: tree.name }),
    leafId: tree.leafId,
    tipId: tree.tipId,
    entries,
    ...(last === undefined ? {} : { nextAfter: last.id }),
    ...(tree.diagnostics.length === 0 ? {} : { diagnostics: [...tree.diagnostics] }),
  };
}

function placeOf(entries: readonly Entry[], id: string): number {
  const place = entries.findIndex((entry) => entry.id === id);
  if (place !== -1) return place;
  const advice = "Take `nextAfter` of the page before, or leave it out to begin anew";
  throw new SkeinError("not_found", { what: "Entry", name: id, advice });
}

function rowOf(tree: SessionTree, entry: Entry, active: boolean, preview: string): TreeRow {
  const label = tree.labels.get(entry.id);
  return {
    id: entry.id,
    parentId: tree.parentOf(entry.id)?.id ?? null,
    type: entry.type === "opaque" ? String(entry.original.type) : entry.type,
    ...(entry.type === "message" ? { role: entry.message.role } : {}),
    timestamp: entry.timestamp,
    active,
    bookkeeping: isBookkeeping(entry),
    ...(label === undefined ? {} : { label }),
    preview,
  };
}
