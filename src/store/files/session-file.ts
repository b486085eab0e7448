import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { Diagnostic } from "../../core/diagnostics.ts";
import type { Entry, SessionHeader } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";
import { metaOf } from "../session-meta.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { appendWhole, makeFolderDurably, readWhole, replaceWhole } from "./disk-files.ts";
import { GroupSync } from "./group-sync.ts";
import type { SessionPaths } from "./layout.ts";
import { Mutex } from "./mutex.ts";
import type { LeftOut } from "./working-set.ts";
import { cutMarksOf, cutWorkingSet, leftOutOf } from "./working-set.ts";
import type { WriteLock } from "./write-lock.ts";

export interface SessionFileSettings {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** `full`: on the disk before it is acknowledged. `os`: with the kernel. */
  readonly durability: "full" | "os";
}

/** What a session's file asks of the index. */
export interface EntryLookup {
  /** Whether an entry stands among the first so many of the log; `null`: the index does not know that many. */
  has(entryId: string, amongFirst: number): boolean | null;
}

export interface WriteOptions {
  readonly fence?: () => boolean;
  /** Runs under the lock once it is known that there is something to write. */
  readonly before?: () => void;
  /** Ids that the plan asks for: where only the working set is loaded, they may stand outside it. */
  readonly needs?: readonly string[];
}

/** A burst of appends keeps the lock over gaps as long as this. */
const burstMs = 20;
/** How soon a waiter is noticed. */
const wantedCheckMs = 5;
const retryReleaseMs = 1000;
const lineBreak = 0x0a;

/**
 * One session on disk: its log, to which everything is appended, and its working set, a second name of the log until
 * the first compaction and then a file of its own that follows it. Opening reads the working set; the rest of the log
 * is read when somebody asks for what is only there.
 */
export class SessionFile {
  readonly #paths: SessionPaths;
  readonly #settings: SessionFileSettings;
  readonly #lock: WriteLock;
  readonly #mutex = new Mutex();
  readonly #findings: Diagnostic[] = [];
  #log: DiskFile;
  #sync: GroupSync;
  /** `null` while the working set is the log's second name. */
  #working: DiskFile | null = null;
  /** As far as the log is in the tree. */
  #size = 0;
  /** Where our own last append ended: with a line break. */
  #ownEnd = -1;
  /** As far as the log is in the working set, and where that then ends. */
  #mirrored = 0;
  #workingEnd = 0;
  /** Where the first append begins that is not on the disk yet. */
  #unsynced: number | null = null;
  readonly #lookup: EntryLookup;
  /** From the working set, or from the whole log. */
  #tree: SessionTree;
  /** Where the tree leaves off the log's beginning; `null`: it is whole. */
  #left: LeftOut | null = null;
  #meta: VersionedMeta;
  #pins = 0;
  #releasing: NodeJS.Timeout | null = null;
  #idleSince = 0;
  #lookedAt = 0;

  private constructor(
    paths: SessionPaths,
    lock: WriteLock,
    log: DiskFile,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ) {
    this.#paths = paths;
    this.#lookup = lookup;
    this.#lock = lock;
    this.#settings = settings;
    this.#log = log;
    this.#sync = new GroupSync(() => this.#log.sync());
    this.#tree = this.#load();
    this.#meta = metaOf(this.#tree.header, this.#tree.entries());
  }

  /** Opens a session's files; those of a session that was accepted and never written are made from its header. */
  static async open(
    paths: SessionPaths,
    lock: WriteLock,
    header: SessionHeader,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    const { disk } = settings;
    const there = disk.stat(paths.log);
    if (there === null || there.size === 0) await begin(paths, lock, `${JSON.stringify(header)}\n`, settings);
    const log = disk.openExisting(paths.log);
    if (log === null) throw failed(paths.log, "it is gone", "Restore it from a backup");
    const file = new SessionFile(paths, lock, log, lookup, settings);
    const inLine = disk.stat(paths.working)?.identity === log.stat().identity || file.#working !== null;
    if (!inLine) await file.write((tree) => tree.plan([]));
    return file;
  }

  /** A new session with these entries already in it. */
  static async create(
    paths: SessionPaths,
    lock: WriteLock,
    tree: SessionTree,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    await begin(paths, lock, tree.encode(), settings);
    return SessionFile.open(paths, lock, tree.header, lookup, settings);
  }

  /** At least what the model is concerned with, what other processes have written since included. */
  get recent(): SessionTree {
    this.#refresh();
    return this.#tree;
  }

  /** Everything in the log. */
  get whole(): SessionTree {
    this.#refresh();
    this.#widen();
    return this.#tree;
  }

  /** Bytes of the log, as far as it is read. */
  readLog(offset: number, length = this.#size - offset): Uint8Array {
    return this.#log.read(offset, length);
  }

  get meta(): VersionedMeta {
    this.#refresh();
    return this.#meta;
  }

  /** What opening found odd beside what the tree says. */
  get findings(): readonly Diagnostic[] {
    return this.#findings;
  }

  /** As far as the log is read; an index that knows this much is up to date. */
  get size(): number {
    return this.#size;
  }

  /** Writes what `make` plans, and resolves when it is kept. A failed write changes nothing. */
  async write(make: (tree: SessionTree) => Plan, options: WriteOptions = {}): Promise<Plan> {
    const written = await this.#mutex.run(async () => {
      await this.#hold();
      try {
        if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId: this.#tree.header.id });
        if (options.needs?.some((id) => this.#mayBeLeftOut(id))) this.#widen();
        const tip = this.#tree.tipId;
        const plan = make(this.#tree);
        const first = plan.nodes[0];
        if (first === undefined) return { plan, end: 0, recut: false };
        options.before?.();
        // A branch that begins elsewhere may begin at an entry that the working set does not have.
        const moves = (first.parent?.entry.id ?? null) !== tip;
        const compacts = plan.nodes.some(({ entry }) => entry.type === "compaction");
        return { plan, end: this.#append(plan), recut: compacts || (moves && this.#working !== null) };
      } catch (error) {
        this.#unpin();
        throw error;
      }
    });
    const { plan, end, recut } = written;
    try {
      if (end > 0) await this.#settle(end, recut);
    } finally {
      this.#unpin();
    }
    return plan;
  }

  /** Finishes what is under way and lets go of the files. */
  async close(): Promise<void> {
    await this.#mutex.run(async () => undefined);
    if (this.#releasing !== null) clearTimeout(this.#releasing);
    this.#lock.release();
    this.#log.close();
    this.#working?.close();
  }

  /** Moves the files into another folder, whole; afterwards this object is of no use. */
  async moveTo(target: SessionPaths): Promise<void> {
    const { disk } = this.#settings;
    await this.close();
    await moveSession(disk, this.#paths, target);
  }

  /** Takes the lock for a burst, and reads in what others have written. */
  async #hold(): Promise<void> {
    this.#pins += 1;
    if (this.#lock.isHeld) return;
    try {
      await this.#lock.acquire();
      this.#checkNames();
      if (this.#log.size() !== this.#size) this.#reload();
      await this.#reconcile();
    } catch (error) {
      this.#unpin();
      throw error;
    }
  }

  #unpin(): void {
    this.#pins -= 1;
    if (this.#pins > 0 || !this.#lock.isHeld) return;
    const now = performance.now();
    this.#idleSince = now;
    // Not by the timer alone: a caller that only ever awaits us leaves timers no turn.
    if (now - this.#lookedAt >= wantedCheckMs) this.#releaseIfDue(now);
    if (this.#lock.isHeld) this.#releasing ??= setTimeout(() => this.#onTimer(), wantedCheckMs);
  }

  /** One timer serves a whole burst. */
  #onTimer(): void {
    this.#releasing = null;
    if (this.#pins > 0 || !this.#lock.isHeld) return;
    const wait = this.#releaseIfDue(performance.now()) ? wantedCheckMs : retryReleaseMs;
    if (!this.#lock.isHeld) return;
    this.#releasing = setTimeout(() => this.#onTimer(), wait);
    if (wait === retryReleaseMs) this.#releasing.unref();
  }

  /** Lets go of the lock when somebody waits for it, or when the burst is over. `false`: the disk did not let us. */
  #releaseIfDue(now: number): boolean {
    this.#lookedAt = now;
    try {
      if (this.#lock.isWanted()) this.#lock.yield();
      else if (now - this.#idleSince >= burstMs) this.#lock.release();
      return true;
    } catch (error) {
      this.#findings.push({
        code: "lock_kept",
        note: `the lock could not be removed: ${(error as Error).message}`,
      });
      return false;
    }
  }

  /** Another process may have put other files under our names. */
  #checkNames(): void {
    const { disk } = this.#settings;
    const named = disk.stat(this.#paths.log);
    if (named === null)
      throw failed(this.#paths.log, "it was deleted while in use", "Restore it from a backup");
    if (named.identity === this.#log.stat().identity) return;
    this.#log.close();
    this.#log = disk.open(this.#paths.log);
    this.#size = -1;
  }

  /** Puts a plan's lines at the end of the log, and the plan into the tree. Returns where the log then ends. */
  #append(plan: Plan): number {
    const start = this.#size;
    const torn = this.#ownEnd !== start && start > 0 && this.#log.read(start - 1, 1)[0] !== lineBreak;
    const bytes = Buffer.from(`${torn ? "\n" : ""}${plan.lines.join("\n")}\n`);
    try {
      appendWhole(this.#log, bytes);
    } catch (error) {
      const advice = this.#cutBack(start, start + bytes.length)
        ? "Nothing was written; make room on the disk and try again"
        : "Try again with the same id";
      throw failed(this.#paths.log, (error as Error).message, advice, error);
    }
    this.#unsynced ??= start;
    const end = this.#log.size();
    if (end === start + bytes.length) {
      this.#tree.commit(plan);
      this.#size = end;
      this.#ownEnd = end;
    } else this.#reload();
    this.#noteMeta(plan);
    return this.#size;
  }

  /** Waits for the disk, then lets the working set follow. */
  async #settle(end: number, recut: boolean): Promise<void> {
    if (this.#settings.durability === "full" || recut) {
      try {
        await this.#sync.wait();
      } catch (error) {
        await this.#mutex.run(async () => this.#poisoned(end));
        throw failed(
          this.#paths.log,
          `the disk did not keep it (${(error as Error).message})`,
          "Try again with the same id",
          error,
        );
      }
    }
    this.#unsynced = this.#size > end ? Math.max(end, this.#unsynced ?? end) : null;
    if (recut) await this.#mutex.run(() => this.#cut());
    else this.#mirror(end);
  }

  /** After a failed sync nobody knows what is on the disk: what was not acknowledged is taken back, if it can be. */
  #poisoned(end: number): void {
    if (this.#unsynced === null || this.#unsynced >= end) return;
    if (this.#log.size() === this.#size) this.#cutBack(this.#unsynced, this.#size);
    this.#unsynced = null;
    this.#log.close();
    this.#log = this.#settings.disk.open(this.#paths.log);
    this.#reload();
  }

  /** Cuts the log back to where our bytes began, unless somebody else wrote behind them. `false`: they are still there. */
  #cutBack(start: number, end: number): boolean {
    try {
      const size = this.#log.size();
      if (size > end) return false;
      if (size > start) this.#log.truncate(start);
      return true;
    } catch (error) {
      this.#findings.push({
        code: "not_cut_back",
        note: `a failed write could not be taken back: ${(error as Error).message}`,
      });
      return false;
    }
  }

  /** Copies what the working set does not have yet from the log. Not synced: the log is what counts. */
  #mirror(end: number): void {
    if (this.#working === null || end <= this.#mirrored) return;
    try {
      const bytes = this.#log.read(this.#mirrored, end - this.#mirrored);
      appendWhole(this.#working, bytes);
      this.#mirrored = end;
      this.#workingEnd += bytes.length;
    } catch (error) {
      // The log has it; the working set is made anew the next time it is opened.
      this.#findings.push({
        code: "working_set_behind",
        note: `the working set could not follow: ${(error as Error).message}`,
      });
    }
  }

  /** A new working set from the log, put in place whole. */
  async #cut(): Promise<void> {
    const { disk, newId } = this.#settings;
    this.#widen();
    const text = cutWorkingSet(this.#tree, this.#size, this.#meta);
    const old = this.#working;
    await replaceWhole(disk, this.#paths.working, Buffer.from(text), newId());
    old?.close();
    this.#working = disk.openExisting(this.#paths.working);
    this.#mirrored = this.#size;
    this.#workingEnd = Buffer.byteLength(text);
  }

  /** Brings the working set in line with the log, and first takes in what others wrote to it. */
  async #reconcile(): Promise<void> {
    const { disk } = this.#settings;
    const named = disk.stat(this.#paths.working);
    if (named?.identity === this.#log.stat().identity) {
      this.#working?.close();
      this.#working = null;
      return;
    }
    const open = this.#working?.stat().identity;
    const untouched = named?.identity === open && named?.size === this.#workingEnd;
    if (untouched && this.#mirrored === this.#size) return;
    const bytes = readWhole(disk, this.#paths.working);
    this.#widen();
    if (bytes !== null) this.#takeIn(bytes);
    if (this.#fromWorkingSet(bytes) === null) await this.#cut();
  }

  /** The working set's tree, if it says what the log says: its own lines at the cut, then the log's bytes behind it. */
  #fromWorkingSet(bytes: Uint8Array | null): SessionTree | null {
    if (bytes === null) return null;
    const { clock, newId } = this.#settings;
    const session = parseSession(bytes);
    const headerEnd = bytes.indexOf(lineBreak) + 1;
    const marks = cutMarksOf(session.header) ?? { logBytes: 0, ownBytes: -headerEnd };
    const expected = this.#log.read(marks.logBytes, Math.max(0, this.#log.size() - marks.logBytes));
    if (Buffer.compare(bytes.subarray(headerEnd + marks.ownBytes), expected) !== 0) return null;
    const tree = SessionTree.from(session, { clock, newId });
    // The same bytes are not enough where the leaf moved to an entry that was left out, and a crash came before the cut.
    if (tree.diagnostics.some(({ code }) => code === "missing_parent")) return null;
    this.#working?.close();
    this.#working = this.#settings.disk.openExisting(this.#paths.working);
    this.#mirrored = marks.logBytes + expected.length;
    this.#workingEnd = bytes.length;
    return tree;
  }

  /** Lines that somebody else (pi, OpenClaw) appended to the working set go into the log, as they are. */
  #takeIn(bytes: Uint8Array): void {
    const found = parseSession(bytes).lines.filter((line): line is Entry => !isCorrupt(line));
    const foreign = found.filter((entry) => this.#tree.entry(entry.id) === null);
    if (foreign.length === 0) return;
    const ours = this.#tree.tipId;
    const lines = foreign.map((entry) => JSON.stringify(entry.type === "opaque" ? entry.original : entry));
    appendWhole(this.#log, Buffer.from(`${lines.join("\n")}\n`));
    this.#reload();
    const note = `${foreign.length} entries that another program wrote to the working set were taken in`;
    this.#findings.push({
      code: "taken_in",
      note,
      ...(foreign[0] === undefined ? {} : { entryId: foreign[0].id }),
    });
    // Theirs goes on from ours, or ours went on without them: then it stays the branch to go on with.
    const goesOn = ours === null || this.#tree.path().some((entry) => entry.id === ours);
    if (!goesOn) this.#append(this.#tree.planBranch(ours));
  }

  /** While we write ourselves, nobody else does. */
  #refresh(): void {
    if (this.#pins === 0 && this.#log.size() !== this.#size) this.#reload();
  }

  #reload(): void {
    this.#tree = this.#load();
    this.#meta = metaOf(this.#tree.header, this.#tree.entries());
  }

  /** The working set, where it is a file of its own that is in line with the log; else the log. */
  #load(): SessionTree {
    const { disk } = this.#settings;
    const { size, identity } = this.#log.stat();
    const named = disk.stat(this.#paths.working);
    if (named !== null && named.identity !== identity) {
      const tree = this.#fromWorkingSet(readWhole(disk, this.#paths.working));
      const left = leftOutOf(tree?.header ?? null);
      if (tree !== null && left !== null) {
        this.#left = left;
        this.#size = size;
        return tree;
      }
    }
    return this.#readLog();
  }

  #readLog(): SessionTree {
    const { clock, newId } = this.#settings;
    const bytes = this.#log.read(0, this.#log.size());
    this.#size = bytes.length;
    this.#left = null;
    return SessionTree.from(parseSession(bytes), { clock, newId, lostHeader: { id: idOf(this.#paths) } });
  }

  /** From the working set to the whole log. */
  #widen(): void {
    if (this.#left !== null) this.#tree = this.#readLog();
  }

  #mayBeLeftOut(id: string): boolean {
    if (this.#left === null || this.#tree.entry(id) !== null) return false;
    return this.#lookup.has(id, this.#left.entries) !== false;
  }

  #noteMeta(plan: Plan): void {
    const changes = plan.nodes.some(
      ({ entry }) => entry.type === "custom" && entry.customType === "skein.meta",
    );
    if (changes) this.#meta = metaOf(this.#tree.header, this.#tree.entries());
  }
}

/** Makes log and working set of a new session, durably. What a crash left of an earlier try is replaced. */
async function begin(
  paths: SessionPaths,
  lock: WriteLock,
  text: string,
  settings: SessionFileSettings,
): Promise<void> {
  const { disk, newId } = settings;
  await makeFolderDurably(disk, paths.folder);
  await lock.acquire();
  try {
    const there = disk.stat(paths.log);
    if (there !== null && there.size > 0) return;
    await replaceWhole(disk, paths.log, Buffer.from(text), newId());
    disk.unlink(paths.working);
    if (disk.link(paths.log, paths.working)) await disk.syncFolder(paths.folder);
  } finally {
    lock.release();
  }
}

/** Log first: a session without its log would be made anew. */
export async function moveSession(disk: Disk, from: SessionPaths, to: SessionPaths): Promise<void> {
  await makeFolderDurably(disk, to.folder);
  for (const name of ["log", "working"] as const) {
    if (disk.stat(from[name]) !== null) disk.rename(from[name], to[name]);
  }
  await disk.syncFolder(to.folder);
  await disk.syncFolder(from.folder);
}

function idOf(paths: SessionPaths): string {
  return paths.working.slice(dirname(paths.working).length + 1, -".jsonl".length);
}

function failed(file: string, problem: string, advice: string, cause?: unknown): SkeinError {
  return new SkeinError("write_failed", { file, problem, advice }, { cause });
}
