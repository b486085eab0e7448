import type { Static } from "typebox";
import type * as Schema from "./entries.schema.ts";
import { stringifyJson, withExactNumbers } from "./json.ts";
import type { Message } from "./messages.ts";

/** The first line of a session file. */
export interface SessionHeader extends Static<typeof Schema.HeaderSchema> {}

export interface MessageEntry extends Omit<Static<typeof Schema.MessageEntrySchema>, "message"> {
  message: Message;
}
export interface ModelChange extends Static<typeof Schema.ModelChangeSchema> {}
export interface ThinkingLevelChange extends Static<typeof Schema.ThinkingLevelChangeSchema> {}
export interface Compaction extends Static<typeof Schema.CompactionSchema> {}
export interface BranchSummary extends Static<typeof Schema.BranchSummarySchema> {}
export interface CustomEntry extends Static<typeof Schema.CustomEntrySchema> {}
export interface CustomMessage extends Static<typeof Schema.CustomMessageSchema> {}
export interface Label extends Static<typeof Schema.LabelSchema> {}
export interface SessionInfo extends Static<typeof Schema.SessionInfoSchema> {}
export interface UsageEntry extends Static<typeof Schema.UsageEntrySchema> {}
export interface ContextEdit extends Static<typeof Schema.ContextEditSchema> {}
export interface LeafEntry extends Static<typeof Schema.LeafSchema> {}
export interface ActiveToolsChange extends Static<typeof Schema.ActiveToolsChangeSchema> {}

/**
 * An entry that cannot be used as what its `type` says, or whose type nobody here knows: it keeps its place in the
 * tree, contributes nothing, and is written back as it was. Lives in memory only.
 */
export interface OpaqueEntry {
  readonly type: "opaque";
  readonly id: string;
  readonly parentId: string | null;
  readonly timestamp: string;
  /** The line's own object. */
  readonly original: Readonly<Record<string, unknown>>;
  /** What is wrong with it; `null` for an unknown type, which is no fault. */
  readonly problem: string | null;
}

/** One line of a session, with its place in the tree. */
export type Entry =
  | MessageEntry
  | ModelChange
  | ThinkingLevelChange
  | Compaction
  | BranchSummary
  | CustomEntry
  | CustomMessage
  | Label
  | SessionInfo
  | UsageEntry
  | ContextEdit
  | LeafEntry
  | ActiveToolsChange
  | OpaqueEntry;

/** A line that is no entry: never an exception, never silence. */
export interface CorruptLine {
  /** The beginning of what stands there, for people. */
  readonly corrupt: string;
  /** Counted from 1. */
  readonly line: number;
  readonly reason: CorruptReason;
}

/** `torn`: the last line, cut off in the middle of a write. */
export type CorruptReason = "not_utf8" | "not_json" | "torn" | "not_object" | "not_entry";

export const currentVersion = 3;

/** Entries that keep the session's books; for `expectedLeafId` they do not count as the leaf. */
export function isBookkeeping(entry: Entry): boolean {
  return (
    entry.type === "label" ||
    entry.type === "session_info" ||
    (entry.type === "custom" && entry.customType.startsWith("skein."))
  );
}

/** The entry of the same session that this one repeats on another branch, by its `skein.copyOf`; `null`: it is no copy. */
export function copiedFrom(line: Readonly<Record<string, unknown>>): string | null {
  const { skein } = line;
  if (typeof skein !== "object" || skein === null || !("copyOf" in skein)) return null;
  return typeof skein.copyOf === "string" ? skein.copyOf : null;
}

/**
 * Tells a damaged line from an entry.
 *
 * @example
 * ```ts
 * import { isCorrupt, parseSession } from "skein";
 * const entries = parseSession("").lines.filter((line) => !isCorrupt(line));
 * ```
 */
export function isCorrupt(line: Entry | CorruptLine): line is CorruptLine {
  return !("type" in line);
}

/** The object that a line holds. */
export function lineOf(entry: Entry): Readonly<Record<string, unknown>> {
  return entry.type === "opaque" ? entry.original : (entry as unknown as Record<string, unknown>);
}

/** Entries with numbers that a double cannot hold, as they were written. */
const exactLines = new WeakMap<object, unknown>();

/** Remembers how the numbers of an entry were written; of an entry that was made of another one, as of that. */
export function keepExact(entry: Entry, from: { readonly exact: unknown } | Entry): void {
  const exact = "exact" in from ? from.exact : exactLines.get(from);
  if (exact !== null && exact !== undefined) exactLines.set(entry, exact);
}

/** The same entry under another parent. */
export function withParentId(entry: Entry, parentId: string | null): Entry {
  const moved: Entry =
    entry.type === "opaque"
      ? { ...entry, parentId, original: { ...entry.original, parentId } }
      : { ...entry, parentId };
  keepExact(moved, entry);
  return moved;
}

/** The text of one entry, without its line break. Key order is the object's own. */
export function encodeEntry(entry: Entry): string {
  const exact = exactLines.get(entry);
  if (exact === undefined) return stringifyJson(lineOf(entry));
  return stringifyJson(withExactNumbers(lineOf(entry), exact));
}
