import type { Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import type { SessionTree } from "../core/tree.ts";
import type { TreePayload, TreeRow } from "../protocol/session-payloads.ts";
import { previewOf } from "./preview.ts";
import { sessionKeyOf } from "./session-key.ts";

/** Every entry of a session, with its place in the tree. A store knows the key better than the file: it may change. */
export function treeView(tree: SessionTree, key = sessionKeyOf(tree)): TreePayload {
  const active = new Set(tree.path().map((entry) => entry.id));
  return {
    ...(key === null ? {} : { sessionKey: key }),
    sessionId: tree.header.id,
    ...(tree.name === null ? {} : { name: tree.name }),
    leafId: tree.leafId,
    tipId: tree.tipId,
    entries: Array.from(tree.entries(), (entry) => rowOf(tree, entry, active.has(entry.id))),
    ...(tree.diagnostics.length === 0 ? {} : { diagnostics: [...tree.diagnostics] }),
  };
}

function rowOf(tree: SessionTree, entry: Entry, active: boolean): TreeRow {
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
    preview: previewOf(entry),
  };
}
