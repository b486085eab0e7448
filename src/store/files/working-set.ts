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

/**
 * The working set: what the model is concerned with, as a session file of its own. Pure: from the whole tree to the
 * lines that belong in it.
 */

/** What the header of a cut working set says of itself, under `skein`. */
interface CutMarks {
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

const lineBreak = 0x0a;

/**
 * The working set on disk: the log's second name, or a file of its own that is written after the log and never synced
 * alone. What is wrong with it is mended from the log.
 */
export class WorkingFile {
  readonly #path: string;
  readonly #disk: Disk;
  readonly #log: LogFile;
  /** `null` while it is the log's second name, or not in line with it. */
  #file: DiskFile | null = null;
  /** As far as the log is in it, and where it then ends. */
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

  /** Whether it is only another name of the log. */
  isLog(): boolean {
    return this.#disk.stat(this.#path)?.identity === this.#log.identity;
  }

  /** Whether it needs no mending. */
  isInLine(): boolean {
    return this.#file !== null || this.isLog();
  }

  /** Whether nobody else has written to it since, and it has all of the log up to here. */
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
      const advice = "Move it to another place; the next request builds the file from the session's log";
      throw new SkeinError("unreadable_file", { ...error.details, advice } as typeof error.details);
    }
  }

  /**
   * What it holds, if that says what the log says: its own lines at the cut, then the log's bytes behind it. From then
   * on it follows the log. `null`: it has to be made anew.
   */
  adopt(bytes: Uint8Array | null, options: TreeOptions): SessionTree | null {
    this.#drop();
    if (bytes === null || this.isLog()) return null;
    const session = parseSession(bytes);
    const headerEnd = bytes.indexOf(lineBreak) + 1;
    const marks = cutMarksOf(session.header) ?? { logBytes: 0, ownBytes: -headerEnd };
    const expected = this.#log.read(marks.logBytes, Math.max(0, this.#log.size - marks.logBytes));
    if (Buffer.compare(bytes.subarray(headerEnd + marks.ownBytes), expected) !== 0) return null;
    // The same bytes are not enough where the leaf moved to an entry that was left out, and a crash came before the cut.
    const tree = SessionTree.from(session, options);
    if (tree.diagnostics.some(({ code }) => code === "missing_parent")) return null;
    this.#file = this.#disk.openExisting(this.#path);
    this.#followed = marks.logBytes + expected.length;
    this.#end = bytes.length;
    return tree;
  }

  /** Copies what it does not have yet from the log. What went wrong, or `null`; the log has it all the same. */
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
      return `the working set could not follow: ${(error as Error).message}`;
    }
  }

  /**
   * Puts another one in its place, whole and durable. What somebody else has added to the old one until then comes back:
   * it is nowhere else.
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
