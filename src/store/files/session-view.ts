import type { Clock } from "../../core/clock.ts";
import type { ContextOptions, ContextState, SessionContext } from "../../core/context.ts";
import { contextBytes, initialState } from "../../core/context.ts";
import type { Entry, SessionHeader } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import type { IdSource } from "../../core/ids.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { parseSession, parsingSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";
import { metaOf } from "../session-meta.ts";
import type { IndexedPlace, Known } from "./index-db.ts";
import type { LogFile } from "./log-file.ts";
import type { LeftOut, WorkingFile } from "./working-set.ts";
import { lastSaid, leftOutOf, saidAtOf } from "./working-set.ts";

/** The queries that a session file sends to the index. */
export interface EntryLookup {
  known(): Known | null;
  /** Returns an entry's position in the log, or `null` if unknown. */
  placeOf(entryId: string): IndexedPlace | null;
  /** Returns where the lines from one position up to another start, and their total length with line breaks. */
  spanOf(from: number, to: number): { readonly offset: number; readonly bytes: number };
  /** Returns the context state after an entry, or `null` if unknown. */
  stateBehind(entryId: string): ContextState | null;
  /** Called when another program has written to the log. */
  grew(): void;
}

export interface ViewSettings {
  readonly clock: Clock;
  readonly newId: IdSource;
  /** How much of a long log is read before appending. */
  readonly tailBytes: number;
}

/** Added to the estimated size of a tail, so that the tail is larger than the byte budget. */
const roomBytes = 64 * 1024;
/** The minimum and maximum factors by which a tail grows. A large byte budget overrides the maximum. */
const tailGrowth = { least: 1.25, most: 4 };
/**
 * The maximum number of restarts if the log is replaced while it is being read. After that, the log is read in one
 * step.
 */
const mostTries = 3;

/**
 * The part of a session that is in memory: its working set, the end of a long log, or everything. It grows on demand.
 */
export class SessionView {
  readonly #sessionId: string;
  readonly #log: LogFile;
  readonly #working: WorkingFile;
  readonly #lookup: EntryLookup;
  readonly #settings: ViewSettings;
  /** How much of the log is in the tree. */
  #size = 0;
  #tree!: SessionTree;
  #meta!: VersionedMeta;
  /** The part missing at the beginning of the tree, or `null` if nothing is missing. */
  #left: LeftOut | null = null;
  /** Size of the tail, if the tree is the end of a log that has never been compacted. */
  #tailBytes: number | null = null;
  #reloads = 0;
  #loading: Promise<unknown> | null = null;
  #loadingAll: Promise<void> | null = null;

  /** Reads nothing until `load`. */
  constructor(
    sessionId: string,
    log: LogFile,
    working: WorkingFile,
    lookup: EntryLookup,
    settings: ViewSettings,
  ) {
    this.#sessionId = sessionId;
    this.#log = log;
    this.#working = working;
    this.#lookup = lookup;
    this.#settings = settings;
  }

  get tree(): SessionTree {
    return this.#tree;
  }

  get meta(): VersionedMeta {
    return this.#meta;
  }

  get size(): number {
    return this.#size;
  }

  get isWhole(): boolean {
    return this.#left === null;
  }

  /** Time of the last conversation entry on any branch, or `null` if there is none yet. */
  get saidAt(): number | null {
    const behind = lastSaid(this.#tree, this.#left?.ownEntries ?? 0);
    return behind ?? (this.#left === null ? null : saidAtOf(this.#tree.header));
  }

  /** Returns `null` if the entry does not exist. */
  entry(id: string): Entry | null {
    if (this.mayLeaveOut(id)) this.loadAll();
    return this.#tree.entry(id);
  }

  /** Reads no more of a long log than the byte budget needs. */
  context(options: ContextOptions): SessionContext {
    const { byteBudget } = options;
    if (byteBudget === undefined && this.#tailBytes !== null) this.loadAll();
    let context = this.#tree.context(undefined, options);
    while (context.cut === null && this.#tailBytes !== null && this.#hasMoreBefore) {
      const wider = widerTail(this.#tailBytes, contextBytes(context), byteBudget ?? 0);
      if (wider >= this.#log.size || !this.#readTail(wider)) this.loadAll();
      context = this.#tree.context(undefined, options);
    }
    return context;
  }

  get #hasMoreBefore(): boolean {
    return typeof this.#tree.header.skein?.base === "string";
  }

  /** Whether the tree is the end of a log that has never been compacted. */
  get isTail(): boolean {
    return this.#tailBytes !== null;
  }

  /** Whether an entry might be outside the loaded part. */
  mayLeaveOut(id: string): boolean {
    if (this.#left === null || this.#tree.entry(id) !== null) return false;
    const { entries } = this.#left;
    const known = this.#lookup.known();
    if (known === null || known.fold.digest.entries < entries) return true;
    const place = this.#lookup.placeOf(id);
    return place !== null && place.position < entries;
  }

  /** Adds written entries, up to a given size of the log. */
  commit(plan: Plan, size: number): void {
    this.#tree.commit(plan);
    this.#size = size;
    if (plan.nodes.some(({ entry }) => isMeta(entry))) this.#meta = this.#readMeta();
  }

  /** Reads the files again. */
  reload(): void {
    this.#reloads += 1;
    if (!this.#loadPart()) this.#takeWhole(this.#readLog());
  }

  /** Like `reload`, but in chunks. The log must not be written to while it is being read. */
  async load(slices = new Slices()): Promise<void> {
    this.#reloads += 1;
    if (this.#loadPart()) return;
    const loading = this.#readLogInSlices(this.#log.size, slices);
    this.#loading = loading;
    try {
      this.#takeWhole(await loading);
    } finally {
      this.#loading = null;
      this.#reloads += 1;
    }
  }

  loadAll(): void {
    if (this.#left !== null) this.#takeWhole(this.#readLog());
  }

  /** Like `loadAll`, but in chunks. Includes anything that is written while loading. */
  loadAllInSlices(): Promise<void> {
    if (this.#left === null) return Promise.resolve();
    this.#loadingAll ??= this.#loadAllInSlices(new Slices()).finally(() => {
      this.#loadingAll = null;
    });
    return this.#loadingAll;
  }

  /** Like `loadAllInSlices`, but for the holder of the lock. Does not queue behind other readers. */
  loadAllUnderLock(): Promise<void> {
    return this.#loadAllInSlices(Slices.underLock());
  }

  async #loadAllInSlices(slices: Slices): Promise<void> {
    for (let tries = 0; this.#left !== null; tries++) {
      if (tries === mostTries) return this.loadAll();
      await this.#loading;
      if (this.#left === null) return;
      const [reloads, known] = [this.#reloads, this.#tree.size];
      const whole = await this.#readLogInSlices(this.#size, slices);
      if (reloads !== this.#reloads || this.#left === null) continue;
      whole.tree.takeIn(this.#tree.entries(known));
      this.#takeWhole({ tree: whole.tree, size: this.#size });
    }
  }

  #takeWhole({ tree, size }: { readonly tree: SessionTree; readonly size: number }): void {
    this.#tree = tree;
    this.#size = size;
    this.#left = null;
    this.#tailBytes = null;
    this.#meta = this.#readMeta();
  }

  /**
   * Loads the working set if it matches the log. Otherwise, loads the end of the log. Returns `false` if neither is
   * possible.
   */
  #loadPart(): boolean {
    const isLog = this.#working.isLog();
    if (isLog) return this.#readTail(this.#settings.tailBytes);
    const tree = this.#working.adopt(this.#working.readWhole(), this.#settings);
    const left = leftOutOf(tree?.header ?? null);
    if (tree === null || left === null) return false;
    this.#tree = tree;
    this.#left = left;
    this.#tailBytes = null;
    this.#size = this.#log.size;
    this.#meta = this.#readMeta();
    return true;
  }

  /** Loads the end of the log. Returns `false` if the index does not contain enough data about the rest. */
  #readTail(bytes: number): boolean {
    const { clock, newId } = this.#settings;
    // Uses a single snapshot because the log might grow while its end is being read.
    const { size, identity } = this.#log.stat();
    const read = (from: number) => this.#log.read(from, size - from);
    const session = readTail({ size, identity, read }, this.#lookup, bytes);
    const left = leftOutOf(session?.header ?? null);
    if (session === null || left === null) return false;
    const tree = SessionTree.from(session, { clock, newId });
    // The tail has only bookkeeping entries. The last conversation entry is before it.
    if (tree.leafId === null && typeof tree.header.skein?.base === "string") return false;
    this.#tree = tree;
    this.#left = left;
    this.#tailBytes = bytes;
    this.#size = size;
    // A concurrent read of the rest started from a different tree.
    this.#reloads += 1;
    this.#meta = this.#readMeta();
    return true;
  }

  /**
   * The header of a truncated working set has the metadata at the point of truncation. Later entries are applied to it.
   */
  #readMeta(): VersionedMeta {
    return metaOf(this.#tree.header, this.#tree.entries(this.#left?.ownEntries ?? 0));
  }

  #readLog(): { readonly tree: SessionTree; readonly size: number } {
    const bytes = this.#log.read(0, this.#log.size);
    return { tree: SessionTree.from(parseSession(bytes), this.#reading), size: bytes.length };
  }

  async #readLogInSlices(
    size: number,
    slices: Slices,
  ): Promise<{ readonly tree: SessionTree; readonly size: number }> {
    const bytes = await slices.run(readingLog(this.#log, 0, size));
    const session = await slices.run(parsingSession(bytes));
    const tree = await slices.run(SessionTree.growing(session, this.#reading));
    return { tree, size: bytes.length };
  }

  get #reading() {
    const { clock, newId } = this.#settings;
    return { clock, newId, lostHeader: { id: this.#sessionId } };
  }
}

/**
 * Estimates the size of the tail that fills a byte budget, assuming that earlier lines are similar to the lines in this
 * tail.
 */
function widerTail(tailBytes: number, shownBytes: number, byteBudget: number): number {
  const estimate = (1.1 * byteBudget * tailBytes) / Math.max(1, shownBytes) + roomBytes;
  const most = Math.max(tailGrowth.most * tailBytes, 2 * byteBudget);
  return Math.ceil(Math.min(Math.max(estimate, tailGrowth.least * tailBytes), most));
}

const pieceBytes = 1024 * 1024;

/** Reads a log from one offset up to another. */
export function* readingLog(log: LogFile, from: number, to: number): Steps<Uint8Array> {
  const bytes = Buffer.allocUnsafe(to - from);
  for (let at = 0; at < bytes.length; ) {
    const piece = log.readInto(bytes.subarray(at, at + pieceBytes), from + at);
    // The file has been truncated.
    if (piece.length === 0) return bytes.subarray(0, at);
    at += piece.length;
    // Copying is faster than parsing.
    yield piece.length / 8;
  }
  return bytes;
}

function isMeta(entry: Entry): boolean {
  return entry.type === "custom" && entry.customType === "skein.meta";
}

interface TailSource {
  readonly size: number;
  readonly identity: string;
  /** Reads from a position up to `size`. */
  read(from: number): Uint8Array;
}

const lineBreak = 0x0a;

/**
 * Reads at least `bytesWanted` from the end of a log as a separate session. The index data about the rest goes into a
 * header like the one in a truncated working set. Returns `null` if the whole log is needed.
 */
function readTail(log: TailSource, index: EntryLookup, bytesWanted: number): ParsedSession | null {
  if (log.size <= 2 * bytesWanted) return null;
  const known = index.known();
  if (known === null || !isUsable(known, log, bytesWanted)) return null;
  const { fold, logBytes } = known;
  const wanted = log.size - bytesWanted;
  const from = Math.max(Math.min(wanted, logBytes), fold.chain.offset);
  const found = wholeFrom(log, from, from === fold.chain.offset);
  const session = parseSession(found.bytes);
  const base = baseOf(session, found.offset, logBytes, index);
  if (base === undefined || fold.header === null) return null;
  const state = base === null ? initialState : index.stateBehind(base);
  if (state === null) return null;
  const before = knownLines(session, found.offset, logBytes);
  return withNotes(session, fold.header, known, { base, before, state });
}

function isUsable({ fold, identity, logBytes }: Known, log: TailSource, bytesWanted: number): boolean {
  const isSame = identity === log.identity && logBytes <= log.size;
  const isNear = log.size - logBytes <= 4 * bytesWanted;
  return isSame && isNear && !fold.isOdd && fold.digest.compactions === 0;
}

function wholeFrom(log: TailSource, from: number, isBegin: boolean): { bytes: Uint8Array; offset: number } {
  const bytes = log.read(from);
  const skip = isBegin ? 0 : bytes.indexOf(lineBreak) + 1;
  return { bytes: bytes.subarray(skip), offset: from + skip };
}

/** The number of indexed lines in the tail. */
function knownLines({ places }: ParsedSession, offset: number, logBytes: number): number {
  return places.filter((place) => offset + place.offset < logBytes).length;
}

/**
 * Returns the omitted parent, or `undefined` if the tail branches, is damaged, differs from the index, or repeats an
 * earlier ID.
 */
function baseOf(
  session: ParsedSession,
  offset: number,
  logBytes: number,
  index: EntryLookup,
): string | null | undefined {
  const [first] = session.lines;
  if (first === undefined || isCorrupt(first)) return undefined;
  const seen = new Set<string | null>([first.parentId]);
  const known = knownLines(session, offset, logBytes);
  if (!isAsKnown(session, offset, known, index)) return undefined;
  for (const [place, line] of session.lines.entries()) {
    if (isCorrupt(line) || line.type === "compaction" || line.type === "leaf") return undefined;
    if (!seen.has(line.parentId) || seen.has(line.id)) return undefined;
    if (place >= known && index.placeOf(line.id) !== null) return undefined;
    seen.add(line.id);
  }
  return first.parentId;
}

/**
 * Whether the index has the tail's first lines at the same positions. A repeated line does not have its own position.
 */
function isAsKnown(session: ParsedSession, offset: number, known: number, index: EntryLookup): boolean {
  const positionOf = (at: number) => {
    const [line, place] = [session.lines[at], session.places[at]];
    if (line === undefined || place === undefined || isCorrupt(line)) return null;
    const found = index.placeOf(line.id);
    return found?.offset === offset + place.offset ? found.position : null;
  };
  const [first, last] = [positionOf(0), positionOf(known - 1)];
  return first !== null && last !== null && last - first === known - 1;
}

function withNotes(
  session: ParsedSession,
  own: SessionHeader,
  { fold, logBytes }: Known,
  tail: { base: string | null; before: number; state: ContextState },
): ParsedSession {
  const { base, before, state } = tail;
  const { model, thinkingLevel, system } = state;
  const skein = {
    ...own.skein,
    meta: fold.meta,
    version: fold.version,
    base,
    entries: fold.digest.entries,
    ownEntries: before,
    saidAt: fold.saidAt || null,
    model,
    thinkingLevel,
    ...(system === null ? {} : { system }),
    tailOf: logBytes,
    tailName: fold.name,
  };
  return { ...session, header: { ...own, skein }, diagnostics: [] };
}
