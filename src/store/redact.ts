import { SkeinError } from "../core/errors.ts";
import { splitLines } from "../core/lines.ts";
import { sameJson } from "../core/link.ts";
import { isRecord } from "../core/shape.ts";
import { isTombstone, tombstoneOf } from "../core/tombstone.ts";
import type { SessionTree } from "../core/tree.ts";
import type { Redaction } from "./contract.ts";

/** Redaction of a session's lines: pure, the same in every store. */

type Line = Readonly<Record<string, unknown>>;

/** Refuses ids that are not of the session, and entries that hold nothing that was said. */
export function checkRedactable(tree: SessionTree, entryIds: readonly string[]): void {
  for (const id of entryIds) {
    const entry = tree.path(id).at(-1);
    if (entry?.type !== "custom" || !entry.customType.startsWith("skein.")) continue;
    throw new SkeinError("invalid_arguments", {
      problem: `Entry ${id} is ${entry.customType}, which keeps the session's books`,
      advice: "Change the session's metadata instead; redact what was said",
    });
  }
}

/** The lines of entries as they stand, by id; tombstones and damaged lines are not among them. */
export function linesOf(bytes: Uint8Array, ids: ReadonlySet<string>): Map<string, Line> {
  const found = new Map<string, Line>();
  for (const { text } of splitLines(bytes)) {
    const line = idIn(text, ids);
    if (line !== null && !isTombstone(line)) found.set(String(line.id), line);
  }
  return found;
}

/** The same session with tombstones for these entries; all other bytes stay. `null`: it has none of them. */
export function withTombstones(
  bytes: Uint8Array,
  wanted: ReadonlyMap<string, Line>,
  time: number,
): { bytes: Uint8Array; entryIds: readonly string[] } | null {
  const ids = new Set(wanted.keys());
  const entryIds: string[] = [];
  const pieces: Uint8Array[] = [];
  let copied = 0;
  for (const { text, offset, length } of splitLines(bytes)) {
    const line = idIn(text, ids);
    if (line === null || !isCopy(line, wanted.get(String(line.id)))) continue;
    entryIds.push(String(line.id));
    pieces.push(bytes.subarray(copied, offset), Buffer.from(JSON.stringify(tombstoneOf(line, time))));
    copied = offset + length;
  }
  if (entryIds.length === 0) return null;
  return { bytes: Buffer.concat([...pieces, bytes.subarray(copied)]), entryIds };
}

/** Summaries behind an entry that is gone, on any branch: they may repeat it. */
function summariesBehind(tree: SessionTree, gone: ReadonlySet<string>): string[] {
  const behind = new Set<string>();
  const summaries: string[] = [];
  for (const { id, type } of tree.entries()) {
    const parent = tree.parentOf(id)?.id;
    if (!gone.has(id) && (parent === undefined || !behind.has(parent))) continue;
    behind.add(id);
    if (!gone.has(id) && (type === "compaction" || type === "branch_summary")) summaries.push(id);
  }
  return summaries;
}

/** What a redaction came to, from the trees as they are afterwards. */
export function redactionOf(
  done: readonly { readonly tree: SessionTree; readonly entryIds: readonly string[] }[],
): Redaction {
  return {
    sessions: done.map(({ tree, entryIds }) => ({ sessionId: tree.header.id, entryIds })),
    mayRepeat: done.flatMap(({ tree, entryIds }) =>
      summariesBehind(tree, new Set(entryIds)).map((entryId) => ({ sessionId: tree.header.id, entryId })),
    ),
  };
}

/** A fork has the same entry under the same id; an entry of another session that only shares the id is not ours. */
function isCopy(line: Line, original: Line | undefined): boolean {
  if (original === undefined || isTombstone(line)) return false;
  return sameJson({ ...line, parentId: null }, { ...original, parentId: null });
}

function idIn(text: string | null, ids: ReadonlySet<string>): Line | null {
  if (text === null || ![...ids].some((id) => text.includes(id))) return null;
  try {
    const line: unknown = JSON.parse(text);
    return isRecord(line) && typeof line.id === "string" && ids.has(line.id) && line.type !== "session"
      ? line
      : null;
  } catch {
    return null; // damaged: it is no entry
  }
}
