import type { Entry, SessionHeader } from "../../core/entries.ts";
import { encodeEntry, isBookkeeping } from "../../core/entries.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";

/**
 * The working set: what the model is concerned with, as a session file of its own. Pure: from the whole tree to the
 * lines that belong in it.
 */

/** What the header of a cut working set says of itself, under `skein`. */
export interface CutMarks {
  /** The parent that is left out on purpose; `null` when the path begins at a root. */
  readonly base: string | null;
  /** The log's size at the cut. */
  readonly logBytes: number;
  /** The working set's size at the cut, without its header line. */
  readonly ownBytes: number;
}

/** How many entries of the log are not in a cut working set as they stand there. */
export interface LeftOut {
  /** Entries of the log at the cut. */
  readonly entries: number;
  /** Entries of the working set at the cut. */
  readonly ownEntries: number;
}

/** The lines of a cut working set: name and live labels, then the path from the first kept entry on. */
export function cutWorkingSet(tree: SessionTree, logBytes: number, meta: VersionedMeta): string {
  const path = tree.path();
  const from = firstKept(path);
  const kept = path.slice(from);
  const base = path[from - 1]?.id ?? null;
  const shown = new Set(kept);
  const prelude = bookkeepingOf(tree)
    .filter((entry) => !shown.has(entry))
    .map((entry): Entry => ({ ...entry, parentId: base }));
  const body = [...prelude, ...kept].map((entry) => `${encodeEntry(entry)}\n`).join("");
  const before = tree.context(base);
  const skein = {
    ...tree.header.skein,
    ...(meta.key === null ? {} : { key: meta.key }),
    meta: meta.meta,
    version: meta.version,
    base,
    logBytes,
    ownBytes: Buffer.byteLength(body),
    entries: tree.size,
    saidAt: lastSaid(tree, 0),
    ownEntries: prelude.length + kept.length,
    model: before.model,
    thinkingLevel: before.thinkingLevel,
    ...(before.system === null ? {} : { system: before.system }),
  };
  const header: SessionHeader = { ...tree.header, skein };
  return `${JSON.stringify(header)}\n${body}`;
}

export function cutMarksOf(header: SessionHeader | null): CutMarks | null {
  const { base, logBytes, ownBytes } = header?.skein ?? {};
  if (typeof logBytes !== "number" || typeof ownBytes !== "number") return null;
  return { base: typeof base === "string" ? base : null, logBytes, ownBytes };
}

export function leftOutOf(header: SessionHeader | null): LeftOut | null {
  const { entries, ownEntries } = header?.skein ?? {};
  return typeof entries === "number" && typeof ownEntries === "number" ? { entries, ownEntries } : null;
}

export function saidAtOf(header: SessionHeader): number | null {
  return typeof header.skein?.saidAt === "number" ? header.skein.saidAt : null;
}

/** The time of the last entry that is conversation, from a position on. */
export function lastSaid(tree: SessionTree, from: number): number | null {
  for (let position = tree.size - 1; position >= from; position--) {
    const { value: entry } = tree.entries(position).next();
    if (entry !== undefined && !isBookkeeping(entry)) return Date.parse(entry.timestamp) || null;
  }
  return null;
}

/** Where the context begins on a path: at the first kept entry of the last compaction, or at the root. */
function firstKept(path: readonly Entry[]): number {
  const last = path.findLastIndex((entry) => entry.type === "compaction");
  const compaction = path[last];
  if (compaction?.type !== "compaction") return 0;
  const kept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  return kept === -1 || kept > last ? last : kept;
}

/** The entries that set the name and the labels that are live now. */
function bookkeepingOf(tree: SessionTree): Entry[] {
  const last = new Map<string, Entry>();
  for (const entry of tree.entries()) {
    if (entry.type === "session_info") last.set("name", entry);
    else if (entry.type === "label") last.set(`label ${entry.targetId}`, entry);
  }
  return [...last.values()].filter((entry) => (entry.type === "label" ? entry.label : tree.name !== null));
}
