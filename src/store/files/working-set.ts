import type { Entry, SessionHeader } from "../../core/entries.ts";
import { encodeEntry, isBookkeeping } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { TreeOptions } from "../../core/tree.ts";
import { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { appendWhole, readWhole, replaceWhole } from "./disk.ts";
import type { LogFile } from "./log-file.ts";

/** The fields in the header of a truncated working set, under `skein`. */
interface CutMarks {
  /** The omitted parent, or `null` if the path starts at a root. */
  readonly base: string | null;
  /** The log's size at the time of truncation. */
  readonly logBytes: number;
  /** The working set's size at the time of truncation, without its header line. */
  readonly ownBytes: number;
}

/** The number of entries at the time of truncation. */
export interface LeftOut {
  /** Entries in the log. */
  readonly entries: number;
  /** Entries in the working set. */
  readonly ownEntries: number;
}

/**
 * Builds the lines of a truncated working set. The name and labels come first, followed by the path starting at the
 * first kept entry. The last value wins, as in the log, so a name from another branch is placed after an older name on
 * the path.
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

function cutMarksOf(header: SessionHeader | null): CutMarks | null {
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

/** Returns the time of the last conversation entry, starting at a position. */
export function lastSaid(tree: SessionTree, from: number): number | null {
  for (let position = tree.size - 1; position >= from; position--) {
    const { value: entry } = tree.entries(position).next();
    if (entry !== undefined && !isBookkeeping(entry)) return Date.parse(entry.timestamp) || null;
  }
  return null;
}

/**
 * Returns where the context starts on a path. This is the first kept entry of the last compaction or, if there is none,
 * the root.
 */
function firstKept(path: readonly Entry[]): number {
  const last = path.findLastIndex((entry) => entry.type === "compaction");
  const compaction = path[last];
  if (compaction?.type !== "compaction") return 0;
  const kept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  return kept === -1 || kept > last ? last : kept;
}

/** Returns the name or label that an entry sets, or `null` if it sets neither. */
function setBy(entry: Entry): string | null {
  if (entry.type === "session_info") return "name";
  return entry.type === "label" ? `label ${entry.targetId}` : null;
}

/** Returns the kept entries, and the last entries that set the name and each label. */
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
  // If a pi `leaf` line moved the tip and another line would come last here, the move is repeated.
  const isMoved = inserted.has(kept.length - 1) || kept.at(-1)?.type === "leaf";
  if (end?.type === "leaf" && isMoved && !kept.includes(end)) lines.push({ ...end, parentId: base });
  return lines;
}

/** Whether the entry sets a name or label, as opposed to removing one. */
function isSetting(entry: Entry): boolean {
  return entry.type === "label"
    ? Boolean(entry.label)
    : entry.type === "session_info" && Boolean(entry.name?.trim());
}

const lineBreak = 0x0a;

/**
 * The working set on disk. It is either a hard link to the log or a separate file that is written after the log and
 * never synced separately. It is rebuilt from the log when needed.
 */
export class WorkingFile {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #log: LogFile;
  /** `null` if the working set is a link to the log or does not match it. */
  #file: DiskFile | null = null;
  /** The size of the log that the file contains. `#end` is the size of the file itself. */
  #followed = 0;
  #end = 0;

  constructor(path: string, disk: Disk, log: LogFile) {
    this.#path = path;
    this.#disk = disk;
    this.#log = log;
  }

  get isOwnFile(): boolean {
    return this.#file !== null;
  }

  /** Whether the working set is a link to the log. */
  isLog(): boolean {
    return this.#disk.stat(this.#path)?.identity === this.#log.identity;
  }

  /** Whether the working set matches the log. */
  isInLine(): boolean {
    return this.#file !== null || this.isLog();
  }

  /** Whether only this process has written to the file, and the file contains the log up to this size. */
  isUntouched(logSize: number): boolean {
    const named = this.#disk.stat(this.#path);
    if (named === null) return false;
    if (named.identity === this.#log.identity) return true;
    return (
      this.#file?.stat().identity === named.identity && named.size === this.#end && this.#followed === logSize
    );
  }

  readWhole(): Uint8Array | null {
    try {
      return readWhole(this.#disk, this.#path);
    } catch (error) {
      if (!(error instanceof SkeinError) || error.code !== "unreadable_file") throw error;
      const advice = "Move it elsewhere; the next request rebuilds the file from the session's log";
      throw new SkeinError("unreadable_file", { ...error.details, advice } as typeof error.details);
    }
  }

  /**
   * Accepts the file if it matches the log, that is, if it contains its own lines up to the point of truncation and
   * then the log's bytes. From then on, the file follows the log. Returns `null` if the file must be rebuilt.
   */
  adopt(bytes: Uint8Array | null, options: TreeOptions): SessionTree | null {
    this.#drop();
    if (bytes === null || this.isLog()) return null;
    const session = parseSession(bytes);
    const headerEnd = bytes.indexOf(lineBreak) + 1;
    const marks = cutMarksOf(session.header) ?? { logBytes: 0, ownBytes: -headerEnd };
    const expected = this.#log.read(marks.logBytes, Math.max(0, this.#log.size - marks.logBytes));
    if (Buffer.compare(bytes.subarray(headerEnd + marks.ownBytes), expected) !== 0) return null;
    // Equal bytes are not enough if the leaf moved to an omitted entry and the process crashed before the working set
    // was rewritten.
    const tree = SessionTree.from(session, options);
    if (tree.diagnostics.some(({ code }) => code === "missing_parent")) return null;
    this.#file = this.#disk.openExisting(this.#path);
    this.#followed = marks.logBytes + expected.length;
    this.#end = bytes.length;
    return tree;
  }

  /**
   * Copies the missing part from the log. Returns the problem, or `null` if there is none. The log is complete in
   * either case.
   */
  follow(logSize: number): string | null {
    if (this.#file === null || logSize <= this.#followed) return null;
    try {
      const bytes = this.#log.read(this.#followed, logSize - this.#followed);
      appendWhole(this.#file, bytes);
      this.#followed = logSize;
      this.#end += bytes.length;
      return null;
    } catch (error) {
      this.#drop();
      return `the working set could not be updated: ${(error as Error).message}`;
    }
  }

  /**
   * Replaces the file durably. Returns any lines that another program has added to the old file, because they exist
   * nowhere else.
   */
  async replace(text: string, logSize: number, token: string): Promise<Uint8Array | null> {
    await replaceWhole(this.#disk, this.#path, Buffer.from(text), token);
    const size = this.#file?.size() ?? 0;
    const late =
      this.#file !== null && size > this.#end ? this.#file.read(this.#end, size - this.#end) : null;
    this.#drop();
    this.#file = this.#disk.openExisting(this.#path);
    this.#followed = logSize;
    this.#end = Buffer.byteLength(text);
    return late;
  }

  close(): void {
    this.#drop();
  }

  #drop(): void {
    this.#file?.close();
    this.#file = null;
  }
}
