import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import type { Diagnostic, DiagnosticCode } from "../../core/diagnostics.ts";
import type { Entry, SessionHeader } from "../../core/entries.ts";
import { encodeEntry, isCorrupt } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { Mutex } from "../../core/mutex.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";
import { metaOf } from "../session-meta.ts";
import { BurstLock } from "./burst-lock.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { makeFolderDurably, readWhole, replaceWhole } from "./disk-files.ts";
import type { SessionPaths } from "./layout.ts";
import type { LogMark } from "./log-file.ts";
import { failed, LogFile } from "./log-file.ts";
import { WorkingFile } from "./working-file.ts";
import type { LeftOut } from "./working-set.ts";
import { cutWorkingSet, lastSaid, leftOutOf, saidAtOf } from "./working-set.ts";
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

/**
 * One session on disk: its log, to which everything is appended, and its working set, a second name of the log until
 * the first compaction and then a file of its own that follows it. Opening reads the working set; the rest of the log
 * is read when somebody asks for what is only there.
 */
export class SessionFile {
  readonly #paths: SessionPaths;
  readonly #settings: SessionFileSettings;
  readonly #lookup: EntryLookup;
  readonly #lock: BurstLock;
  readonly #log: LogFile;
  readonly #working: WorkingFile;
  readonly #mutex = new Mutex();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #findings: Diagnostic[] = [];
  #isClosed = false;
  /** As far as the log is in the tree. */
  #size = 0;
  /** From the working set, or from the whole log. */
  #tree: SessionTree;
  /** Where the tree leaves off the log's beginning; `null`: it is whole. */
  #left: LeftOut | null = null;
  #meta: VersionedMeta;

  private constructor(
    paths: SessionPaths,
    lock: WriteLock,
    log: DiskFile,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ) {
    this.#paths = paths;
    this.#settings = settings;
    this.#lookup = lookup;
    this.#lock = new BurstLock(lock, (note) => this.#find("lock_kept", note));
    this.#log = new LogFile(paths.log, settings.disk, log, (note) => this.#find("not_cut_back", note));
    this.#working = new WorkingFile(paths.working, settings.disk, this.#log);
    this.#tree = this.#load();
    this.#meta = this.#readMeta();
  }

  /** Opens a session's files; `first` is what those begin with that were never written. */
  static async open(
    paths: SessionPaths,
    lock: WriteLock,
    first: SessionHeader | null,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    const { disk } = settings;
    const there = disk.stat(paths.log);
    if (there === null || there.size === 0) {
      await begin(paths, lock, first === null ? null : `${JSON.stringify(first)}\n`, settings);
    }
    const handle = disk.openExisting(paths.log);
    if (handle === null) throw failed(paths.log, "it is gone", "Restore it from a backup");
    const file = new SessionFile(paths, lock, handle, lookup, settings);
    if (!file.#working.isInLine()) await file.#bringInLine();
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
    return SessionFile.open(paths, lock, null, lookup, settings);
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

  /** What opening and writing found odd beside what the tree says. */
  get findings(): readonly Diagnostic[] {
    return this.#findings;
  }

  /** As far as the log is read; an index that knows this much is up to date. */
  get size(): number {
    return this.#size;
  }

  /** When something was said last, on whatever branch; `null`: nothing yet. */
  get saidAt(): number | null {
    this.#refresh();
    const behind = lastSaid(this.#tree, this.#left?.ownEntries ?? 0);
    return behind ?? (this.#left === null ? null : saidAtOf(this.#tree.header));
  }

  /** Writes what `make` plans, and resolves when it is kept. A failed write changes nothing. */
  write(make: (tree: SessionTree) => Plan, options: WriteOptions = {}): Promise<Plan> {
    if (this.#isClosed) {
      return Promise.reject(
        failed(this.#paths.log, "it was put away meanwhile", "Look the session up again"),
      );
    }
    const writing = this.#write(make, options);
    this.#underWay.add(writing);
    const done = () => this.#underWay.delete(writing);
    writing.then(done, done);
    return writing;
  }

  /** Finishes what is under way and lets go of the files. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    this.#lock.close();
    this.#log.close();
    this.#working.close();
  }

  /** Moves the files into another folder, whole, under the lock; afterwards this object is of no use. */
  async moveTo(target: SessionPaths, before: () => void): Promise<void> {
    await this.#mutex.run(async () => {
      await this.#lock.hold(() => this.#readIn());
      try {
        before();
        await moveSession(this.#settings.disk, this.#paths, target);
      } finally {
        this.#lock.letGo();
      }
    });
    await this.close();
  }

  async #write(make: (tree: SessionTree) => Plan, options: WriteOptions): Promise<Plan> {
    const { plan, mark, recut } = await this.#mutex.run(async () => {
      await this.#lock.hold(() => this.#readIn());
      try {
        return this.#planAndAppend(make, options);
      } catch (error) {
        this.#lock.letGo();
        throw error;
      }
    });
    try {
      if (mark !== null) await this.#settle(mark, recut);
    } finally {
      this.#lock.letGo();
    }
    return plan;
  }

  /** Not at the price of waiting: the log says everything, and the next write brings the working set in line. */
  async #bringInLine(): Promise<void> {
    try {
      await this.#mutex.run(() => this.#lock.hold(() => this.#readIn(), 0));
      this.#lock.letGo();
    } catch (error) {
      if (!(error instanceof SkeinError) || error.code !== "locked") throw error;
    }
  }

  #planAndAppend(
    make: (tree: SessionTree) => Plan,
    options: WriteOptions,
  ): { plan: Plan; mark: LogMark | null; recut: boolean } {
    this.#takeBack();
    if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId: this.#tree.header.id });
    if (options.needs?.some((id) => this.#mayBeLeftOut(id))) this.#widen();
    const tip = this.#tree.tipId;
    const plan = make(this.#tree);
    const first = plan.nodes[0];
    if (first === undefined) return { plan, mark: null, recut: false };
    options.before?.();
    // A branch that begins elsewhere may begin at an entry that the working set does not have.
    const moves = (first.parent?.entry.id ?? null) !== tip;
    const compacts = plan.nodes.some(({ entry }) => entry.type === "compaction");
    const recut = compacts || (moves && this.#working.isOwnFile);
    return { plan, mark: this.#append(plan), recut };
  }

  /** Puts a plan's lines at the end of the log, and the plan into the tree. */
  #append(plan: Plan): LogMark {
    const mark = this.#log.append(this.#size, plan.lines);
    if (mark.end === mark.start + mark.bytes) {
      this.#tree.commit(plan);
      this.#size = mark.end;
      if (plan.nodes.some(({ entry }) => isMeta(entry))) this.#meta = this.#readMeta();
      return mark;
    }
    // Somebody else wrote at the same time, perhaps half a line that ours went into: what is not there is written again.
    this.#reload();
    this.#widen();
    const lost = plan.lines.filter(
      (_, index) => this.#tree.entry(plan.nodes[index]?.entry.id ?? "") === null,
    );
    if (lost.length === 0) return mark;
    const again = this.#log.append(this.#size, lost);
    this.#reload();
    return again;
  }

  /** Waits for the disk, then lets the working set follow. */
  async #settle(mark: LogMark, recut: boolean): Promise<void> {
    if (this.#settings.durability === "full" || recut) {
      try {
        await this.#log.kept(mark);
      } catch (error) {
        await this.#mutex.run(async () => this.#takeBack());
        throw error;
      }
    } else this.#log.noteWritten(mark);
    if (recut) await this.#mutex.run(() => this.#cut());
    else {
      const problem = this.#working.follow(mark.end);
      if (problem !== null) this.#find("working_set_behind", problem);
    }
  }

  #takeBack(): void {
    if (this.#log.takeBack()) this.#reload();
  }

  /** What others have written while we did not have the lock. */
  async #readIn(): Promise<void> {
    if (this.#log.followName() || this.#log.size !== this.#size) this.#reload();
    if (this.#working.isUntouched(this.#size)) return;
    this.#widen();
    const bytes = this.#working.readWhole();
    const taken = bytes === null ? null : this.#takeIn(bytes);
    // The working set may be the only other copy, and is about to be replaced.
    if (taken !== null) await this.#log.kept(taken);
    if (this.#adopt(bytes) === null && !this.#working.isLog()) await this.#cut();
  }

  /** A new working set from the log, put in place whole. */
  async #cut(): Promise<void> {
    this.#widen();
    const text = cutWorkingSet(this.#tree, this.#size, this.#meta);
    await this.#working.replace(text, this.#size, this.#settings.newId());
  }

  /** Lines that somebody else (pi, OpenClaw) appended to the working set go into the log, as they are. */
  #takeIn(bytes: Uint8Array): LogMark | null {
    const found = parseSession(bytes).lines.filter((line): line is Entry => !isCorrupt(line));
    const foreign = found.filter((entry) => this.#tree.entry(entry.id) === null);
    if (foreign.length === 0) return null;
    const ours = this.#tree.tipId;
    const mark = this.#log.append(this.#size, foreign.map(encodeEntry));
    this.#reload();
    const note = `${foreign.length} entries that another program wrote to the working set were taken in`;
    this.#find("taken_in", note, foreign[0]?.id);
    // Theirs goes on from ours, or ours went on without them: then it stays the branch to go on with.
    const goesOn = ours === null || this.#tree.path().some((entry) => entry.id === ours);
    return goesOn ? mark : this.#append(this.#tree.planBranch(ours));
  }

  /** While we write ourselves, nobody else does. */
  #refresh(): void {
    if (!this.#lock.isInUse && this.#log.size !== this.#size) this.#reload();
  }

  #reload(): void {
    this.#tree = this.#load();
    this.#meta = this.#readMeta();
  }

  /** The working set, where it is a file of its own that is in line with the log; else the log. */
  #load(): SessionTree {
    const tree = this.#working.isLog() ? null : this.#adopt(this.#working.readWhole());
    const left = leftOutOf(tree?.header ?? null);
    if (tree === null || left === null) return this.#readLog();
    this.#left = left;
    this.#size = this.#log.size;
    return tree;
  }

  #adopt(bytes: Uint8Array | null): SessionTree | null {
    const { clock, newId } = this.#settings;
    return this.#working.adopt(bytes, { clock, newId });
  }

  /** A cut working set's header has the metadata as it was then; only what came behind the cut is new. */
  #readMeta(): VersionedMeta {
    return metaOf(this.#tree.header, this.#tree.entries(this.#left?.ownEntries ?? 0));
  }

  #readLog(): SessionTree {
    const { clock, newId } = this.#settings;
    const bytes = this.#log.read(0, this.#log.size);
    this.#size = bytes.length;
    this.#left = null;
    return SessionTree.from(parseSession(bytes), { clock, newId, lostHeader: { id: idOf(this.#paths) } });
  }

  /** From the working set to the whole log. */
  #widen(): void {
    if (this.#left === null) return;
    this.#tree = this.#readLog();
    this.#meta = this.#readMeta();
  }

  #mayBeLeftOut(id: string): boolean {
    if (this.#left === null || this.#tree.entry(id) !== null) return false;
    return this.#lookup.has(id, this.#left.entries) !== false;
  }

  #find(code: DiagnosticCode, note: string, entryId?: string): void {
    this.#findings.push({ code, note, ...(entryId === undefined ? {} : { entryId }) });
  }
}

function isMeta(entry: Entry): boolean {
  return entry.type === "custom" && entry.customType === "skein.meta";
}

/** Makes log and working set of a new session, durably. `text` null: it was written before, and its log must be there. */
async function begin(
  paths: SessionPaths,
  lock: WriteLock,
  text: string | null,
  settings: SessionFileSettings,
): Promise<void> {
  const { disk, newId } = settings;
  await makeFolderDurably(disk, paths.folder);
  await lock.acquire();
  try {
    const there = disk.stat(paths.log);
    if (there !== null && there.size > 0) return;
    if (await keepWorkingSet(paths, disk)) return;
    if (text === null) throw failed(paths.log, "it is gone", "Restore it from a backup");
    await replaceWhole(disk, paths.log, Buffer.from(text), newId());
    disk.unlink(paths.working);
    if (disk.link(paths.log, paths.working)) await disk.syncFolder(paths.folder);
  } finally {
    lock.release();
  }
}

/** Where the log is gone and its second name is not, that is the log. A cut working set is not all there was. */
async function keepWorkingSet(paths: SessionPaths, disk: Disk): Promise<boolean> {
  const bytes = readWhole(disk, paths.working);
  if (bytes === null || bytes.length === 0) return false;
  if (leftOutOf(parseSession(bytes).header) !== null) {
    throw failed(
      paths.log,
      "it is gone, and the working set has only a part of it",
      "Restore it from a backup",
    );
  }
  disk.unlink(paths.log);
  disk.link(paths.working, paths.log);
  await disk.syncFolder(paths.folder);
  return true;
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
