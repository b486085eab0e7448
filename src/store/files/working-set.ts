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

/**
 * The lines of a cut working set: name and live labels, then the path from the first kept entry on. The last of several
 * wins, as in the log: a name that stands elsewhere comes behind an older one that the path has.
 */
export function cutWorkingSet(tree: SessionTree, logBytes: number, meta: VersionedMeta): string {
  const path = tree.path();
  const from = firstKept(path);
  const kept = path.slice(from);
  const base = path[from - 1]?.id ?? null;
  const lines = withBookkeeping(kept, tree, base);
  const body = lines.map((entry) => `${encodeEntry(entry)}\n`).join("");
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
    ownEntries: lines.length,
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

/** What an entry sets, the name or a label; `null`: it is no such entry. */
function setBy(entry: Entry): string | null {
  if (entry.type === "session_info") return "name";
  return entry.type === "label" ? `label ${entry.targetId}` : null;
}

/** The kept entries, with the last ones of the log that set the name and each label where they have the last word. */
function withBookkeeping(kept: readonly Entry[], tree: SessionTree, base: string | null): Entry[] {
  const last = new Map<string, Entry>();
  let end: Entry | null = null;
  for (const entry of tree.entries()) {
    const what = setBy(entry);
    if (what !== null) last.set(what, entry);
    end = entry;
  }
  const lastKept = new Map(kept.map((entry, place) => [setBy(entry), place]));
  const inserted = new Map<number, Entry[]>();
  for (const [what, entry] of last) {
    const place = lastKept.get(what) ?? -1;
    if (kept[place] === entry || (place === -1 && !isSetting(entry))) continue;
    inserted.set(place, [...(inserted.get(place) ?? []), { ...entry, parentId: base }]);
  }
  const lines = [...(inserted.get(-1) ?? [])];
  for (const [place, entry] of kept.entries()) lines.push(entry, ...(inserted.get(place) ?? []));
  // Where a `leaf` line of pi's harness moved the tip to where another line has the last word, it has to do so here too.
  const isMoved = inserted.has(kept.length - 1) || kept.at(-1)?.type === "leaf";
  if (end?.type === "leaf" && isMoved && !kept.includes(end)) lines.push({ ...end, parentId: base });
  return lines;
}

/** Whether it gives a name or a label, and does not take one away. */
function isSetting(entry: Entry): boolean {
  return entry.type === "label"
    ? Boolean(entry.label)
    : entry.type === "session_info" && Boolean(entry.name?.trim());
}
