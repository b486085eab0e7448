import { dirname } from "node:path";
import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Diagnostic, DiagnosticCode } from "../../core/diagnostics.ts";
import type { Entry, SessionHeader } from "../../core/entries.ts";
import { encodeEntry, isCorrupt } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { Mutex } from "../../core/mutex.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import type { Steps } from "../../core/slices.ts";
import { Slices } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";
import type { Disk, DiskFile, DiskStat } from "./disk.ts";
import { replaceWhole } from "./disk.ts";
import type { SessionPaths } from "./layout.ts";
import type { LogMark } from "./log-file.ts";
import { FileClosed, LogFile } from "./log-file.ts";
import type { FileOwner } from "./session-files.ts";
import { beginFiles, goneLog, moveSession } from "./session-files.ts";
import type { EntryLookup, ViewSettings } from "./session-view.ts";
import { SessionView } from "./session-view.ts";
import type { LogSummary } from "./work-db.ts";
import { cutWorkingSet, WorkingFile } from "./working-set.ts";
import type { WriteLock } from "./write-lock.ts";
import { BurstLock } from "./write-lock.ts";

export interface SessionFileSettings extends ViewSettings {
  readonly disk: Disk;
  /** `full`: on the disk before it is acknowledged. `os`: with the kernel. */
  readonly durability: "full" | "os";
}

interface WriteOptions {
  readonly fence?: () => boolean;
  /** Runs under the lock once it is known that there is something to write; `isFirst` since the lock was taken. */
  readonly before?: (isFirst: boolean) => void;
  /** Ids that the plan asks for: where only the working set is loaded, they may stand outside it. */
  readonly needs?: readonly string[];
}

/** Nothing that is asked of a model is as long: who wants more of a context gets it in slices. */
const longBudget = 16 * 1024 * 1024;

/**
 * One session on disk: its log, to which everything is appended, and its working set, a second name of the log until
 * the first compaction and then a file of its own that follows it. Opening reads the working set; the rest of the log
 * is read when somebody asks for what is only there.
 */
export class SessionFile {
  readonly #paths: SessionPaths;
  readonly #settings: SessionFileSettings;
  readonly #lock: BurstLock;
  readonly #log: LogFile;
  readonly #working: WorkingFile;
  readonly #lookup: EntryLookup;
  readonly #view: SessionView;
  readonly #mutex = new Mutex();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #findings: Diagnostic[] = [];
  #isClosed = false;
  #isMoved = false;
  /** Writes that wait for the disk or a cut; `null`: there is none. Never rejects. */
  #settling: Promise<unknown> | null = null;
  /** Nothing has been written since the lock was taken. */
  #isFirst = true;

  private constructor(
    paths: SessionPaths,
    lock: WriteLock,
    log: DiskFile,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ) {
    this.#paths = paths;
    this.#settings = settings;
    this.#lock = new BurstLock(lock, (note) => this.#find("lock_kept", note));
    this.#log = new LogFile(paths.log, settings.disk, log, (note) => this.#find("not_cut_back", note));
    this.#working = new WorkingFile(paths.working, settings.disk, this.#log);
    this.#lookup = lookup;
    this.#view = new SessionView(idOf(paths), this.#log, this.#working, lookup, settings);
  }

  /** Opens a session's files; `first` is what those begin with that were never written. */
  static async open(
    paths: SessionPaths,
    lock: WriteLock,
    first: SessionHeader | null,
    owner: FileOwner,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    const { disk } = settings;
    let handle = disk.openExisting(paths.log);
    if (handle === null || handle.size() === 0) {
      handle?.close();
      const bytes = first === null ? null : Buffer.from(`${JSON.stringify(first)}\n`);
      await beginFiles(paths, lock, bytes, owner, settings);
      handle = disk.openExisting(paths.log);
    }
    if (handle === null) throw goneLog(paths.log);
    try {
      const file = new SessionFile(paths, lock, handle, lookup, settings);
      await file.#view.load();
      if (!file.#working.isInLine() || file.#isUncut()) await file.#bringInLine();
      return file;
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  /** A new session with these entries already in it. */
  static async create(
    paths: SessionPaths,
    lock: WriteLock,
    tree: SessionTree,
    owner: FileOwner,
    lookup: EntryLookup,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    await beginFiles(paths, lock, await new Slices().run(encoding(tree)), owner, settings);
    return SessionFile.open(paths, lock, null, owner, lookup, settings);
  }

  /** At least what the model is concerned with, what other processes have written since included. */
  get recent(): SessionTree {
    this.#refresh();
    return this.#view.tree;
  }

  /** Whether this process has the write lock, for a burst at least. */
  get isLocked(): boolean {
    return this.#lock.isHeld && !this.#isMoved && !this.#isClosed;
  }

  /** Where the conversation stood after our last write. */
  get leafId(): string | null {
    return this.#view.tree.leafId;
  }

  /** Everything in the log. */
  get whole(): SessionTree {
    this.#refresh();
    this.#view.widen();
    return this.#view.tree;
  }

  /** So that `whole` is there at once: a long log is read in slices. */
  async widened(): Promise<void> {
    this.#refresh();
    try {
      await this.#view.widenInSlices();
    } catch (error) {
      if (this.#isClosed || this.#isMoved) throw new FileClosed();
      throw error;
    }
  }

  /** The same for whoever asks for these entries; `null`: none of them stands outside what is loaded, and nothing is to be waited for. */
  widenedFor(ids: readonly string[]): Promise<void> | null {
    if (ids.length === 0) return null;
    this.#refresh();
    return ids.some((id) => this.#view.mayLeaveOut(id)) ? this.widened() : null;
  }

  /** The same for a context, which of a compacted session has all it needs. */
  async widenedForContext({ byteBudget = Number.POSITIVE_INFINITY }: ContextOptions): Promise<void> {
    this.#refresh();
    if (this.#view.isTail && byteBudget > longBudget) await this.widened();
  }

  /** How much of the log is in memory beyond what every open session has. */
  get heldBytes(): number {
    return this.#view.isWhole ? this.#view.size : 0;
  }

  /** One entry, wherever it stands; `null`: there is none of this id. */
  entry(id: string): Entry | null {
    this.#refresh();
    return this.#view.entry(id);
  }

  /** What a model is concerned with; of a long log, no more is read than the budget asks for. */
  context(options: ContextOptions): SessionContext {
    this.#refresh();
    const context = this.#view.context(options);
    return { ...context, diagnostics: [...context.diagnostics, ...this.#findings] };
  }

  /** Which file the log is. */
  get identity(): string {
    return this.#log.identity;
  }

  /** Bytes of the log, as far as it is read. */
  readLog(offset: number, length = this.#view.size - offset): Uint8Array {
    return this.#log.read(offset, length);
  }

  /**
   * Another text once anybody has written to the log, or put another one in its place. What is read behind it is never
   * older; `null`: that cannot be said, for somebody here is writing, or it is gone from here.
   */
  get mark(): string | null {
    if (this.#isClosed || this.#isMoved || this.#lock.isInUse) return null;
    const named = this.#refresh();
    if (named === null || named.identity !== this.#log.identity || named.size > this.#view.size) return null;
    return `${named.identity} ${named.size} ${named.changedAt}`;
  }

  get meta(): VersionedMeta {
    this.#refresh();
    return this.#view.meta;
  }

  /** As far as the log is read; an index that knows this much is up to date. */
  get size(): number {
    return this.#view.size;
  }

  /** All of one moment, with one look at the file. */
  get latest(): LogSummary {
    this.#refresh();
    const { tree, meta, saidAt } = this.#view;
    const { name, leafId } = tree;
    return { cwd: tree.header.cwd ?? "", meta: meta.meta, version: meta.version, name, saidAt, leafId };
  }

  /** Writes what `make` plans, and resolves when it is kept. A failed write changes nothing. */
  write(make: (tree: SessionTree) => Plan, options: WriteOptions = {}): Promise<Plan> {
    if (this.#isClosed || this.#isMoved) return Promise.reject(new FileClosed());
    // In a burst, with nobody before us, there is nothing to wait for.
    const writing = this.#lock.join(this.#mutex.isBusy)
      ? this.#writeAtOnce(make, options)
      : this.#write(make, options);
    return writing instanceof Promise ? this.#track(writing) : Promise.resolve(writing);
  }

  #writeAtOnce(make: (tree: SessionTree) => Plan, options: WriteOptions): Plan | Promise<Plan> {
    try {
      const { plan, mark, recut } = this.#planAndAppend(make, options);
      const mustWait = recut || this.#settings.durability === "full" || this.#settling !== null;
      if (mark !== null && mustWait) return this.#settleAndLetGo(plan, mark, recut);
      if (mark !== null) this.#follow(mark);
      this.#lock.letGo();
      return plan;
    } catch (error) {
      this.#lock.letGo();
      return Promise.reject(error);
    }
  }

  async #write(make: (tree: SessionTree) => Plan, options: WriteOptions): Promise<Plan> {
    const { plan, mark, recut } = await this.#mutex.run(async () => {
      if (this.#isMoved) throw new FileClosed();
      await this.#lock.hold(() => this.#readIn());
      try {
        return this.#planAndAppend(make, options);
      } catch (error) {
        this.#lock.letGo();
        throw error;
      }
    });
    return this.#settleAndLetGo(plan, mark, recut);
  }

  /** Writes are acknowledged in the order in which they stand in the log, whatever each has to wait for. */
  async #settleAndLetGo(plan: Plan, mark: LogMark | null, recut: boolean): Promise<Plan> {
    const before = this.#settling;
    const work = mark === null ? Promise.resolve() : this.#settle(mark, recut);
    const settling = Promise.allSettled([before, work]);
    this.#settling = settling;
    try {
      await before;
      await work;
    } finally {
      if (this.#settling === settling) this.#settling = null;
      this.#lock.letGo();
    }
    return plan;
  }

  #track<T>(writing: Promise<T>): Promise<T> {
    this.#underWay.add(writing);
    const done = () => this.#underWay.delete(writing);
    writing.then(done, done);
    return writing;
  }

  /**
   * Replaces the whole log, under the lock. The working set goes first: it may hold what is to be gone, and is made from
   * the log. `null` from `make`: nothing is changed.
   */
  rewrite(make: (bytes: Uint8Array) => Promise<Uint8Array | null>): Promise<void> {
    return this.#track(
      this.#mutex.run(async () => {
        this.#checkOpen();
        await this.#lock.hold(() => this.#readIn());
        try {
          // What waits for its sync is in the bytes that are read, and is synced with them.
          const bytes = await make(this.#log.read(0, this.#log.size));
          if (bytes !== null) await this.#putInPlace(bytes);
        } finally {
          this.#lock.letGo();
        }
      }),
    );
  }

  async #putInPlace(bytes: Uint8Array): Promise<void> {
    const { disk, newId } = this.#settings;
    this.#checkOpen();
    const wasLog = this.#working.isLog();
    await replaceWhole(disk, this.#paths.log, bytes, newId(), () => {
      this.#checkOpen();
      if (!this.#lock.isHeld) throw new FileClosed();
      disk.unlink(this.#paths.working);
    });
    this.#log.followName();
    const isLog = wasLog && disk.link(this.#paths.log, this.#paths.working);
    // Before anything is waited for: whoever reads the log in slices learns that it is another one.
    await this.#view.load(Slices.underLock());
    if (isLog) await disk.syncFolder(this.#paths.folder);
    else await this.#cut();
  }

  #checkOpen(): void {
    if (this.#isMoved || this.#isClosed) throw new FileClosed();
  }

  /** Finishes what is under way and lets go of the files. */
  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    try {
      this.#lock.close();
    } finally {
      this.#log.close();
      this.#working.close();
    }
  }

  /** Moves the files into another folder, whole, under the lock; afterwards this object is of no use. */
  async moveTo(target: SessionPaths, before: () => void): Promise<void> {
    await this.#mutex.run(async () => {
      await this.#lock.hold(() => this.#readIn());
      try {
        before();
        this.#isMoved = true;
        await moveSession(this.#settings.disk, this.#paths, target);
      } finally {
        this.#lock.letGo();
      }
    });
    await this.close();
  }

  /** Not at the price of waiting: the log says everything, and the next write brings the working set in line. */
  async #bringInLine(): Promise<void> {
    try {
      await this.#mutex.run(async () => {
        await this.#lock.hold(() => this.#readIn(), 0);
        try {
          if (this.#isUncut()) await this.#cut();
        } finally {
          this.#lock.letGo();
        }
      });
    } catch (error) {
      if (error instanceof FileClosed) throw error;
      if (error instanceof SkeinError && error.code === "locked") return;
      this.#find("working_set_behind", `the working set could not be made: ${(error as Error).message}`);
    }
  }

  /** An adopted or forked session, or one that another program compacted, whose working set is still everything. */
  #isUncut(): boolean {
    if (!this.#view.isWhole) return false;
    return this.#view.tree.path().some((entry) => entry.type === "compaction") && this.#working.isLog();
  }

  #planAndAppend(
    make: (tree: SessionTree) => Plan,
    options: WriteOptions,
  ): { plan: Plan; mark: LogMark | null; recut: boolean } {
    this.#takeBack();
    if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId: this.#view.tree.header.id });
    if (options.needs?.some((id) => this.#view.mayLeaveOut(id))) this.#view.widen();
    const tip = this.#view.tree.tipId;
    const plan = make(this.#view.tree);
    const first = plan.nodes[0];
    if (first === undefined) return { plan, mark: null, recut: false };
    options.before?.(this.#isFirst);
    this.#isFirst = false;
    // A branch that begins elsewhere may begin at an entry that the working set does not have.
    const moves = (first.parent?.entry.id ?? null) !== tip;
    const compacts = plan.nodes.some(({ entry }) => entry.type === "compaction");
    const recut = compacts || (moves && this.#working.isOwnFile);
    return { plan, mark: this.#append(plan), recut };
  }

  /** Puts a plan's lines at the end of the log, and the plan into the tree. */
  #append(plan: Plan): LogMark {
    const mark = this.#log.append(this.#view.size, plan.lines);
    if (mark.end === mark.start + mark.bytes) {
      this.#view.commit(plan, mark.end);
      return mark;
    }
    // Somebody else wrote at the same time, perhaps half a line that ours went into: what is not there is written again.
    this.#view.reload();
    this.#view.widen();
    const lost = plan.lines.filter(
      (_, index) => this.#view.tree.entry(plan.nodes[index]?.entry.id ?? "") === null,
    );
    if (lost.length === 0) return mark;
    const again = this.#log.append(this.#view.size, lost);
    this.#view.reload();
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
    }
    if (recut) await this.#mutex.run(async () => void (this.#isMoved || (await this.#cut())));
    else this.#follow(mark);
  }

  /** The working set gets what the log has. */
  #follow(mark: LogMark): void {
    this.#log.noteWritten(mark);
    const problem = this.#working.follow(mark.end);
    if (problem !== null) this.#find("working_set_behind", problem);
  }

  #takeBack(): void {
    if (this.#log.takeBack()) this.#view.reload();
  }

  /** What others have written while we did not have the lock. */
  async #readIn(): Promise<void> {
    this.#isFirst = true;
    if (this.#log.followName() || this.#log.size !== this.#view.size) this.#reloadGrown();
    if (this.#working.isUntouched(this.#view.size)) return;
    this.#view.widen();
    const bytes = this.#working.readWhole();
    const taken = bytes === null ? null : this.#takeIn(bytes);
    // The working set may be the only other copy, and is about to be replaced.
    if (taken !== null) await this.#log.kept(taken);
    if (this.#working.adopt(bytes, this.#settings) === null && !this.#working.isLog()) await this.#cut();
  }

  /** A new working set from the log, put in place whole. */
  async #cut(): Promise<void> {
    for (;;) {
      await this.#view.widenUnderLock();
      this.#view.widen();
      const text = cutWorkingSet(this.#view.tree, this.#view.size, this.#view.meta);
      const late = await this.#working.replace(text, this.#view.size, this.#settings.newId());
      const taken = late === null ? null : this.#takeIn(late);
      if (taken === null) return;
      await this.#log.kept(taken);
    }
  }

  /** Lines that somebody else (pi, OpenClaw) appended to the working set go into the log, as they are. */
  #takeIn(bytes: Uint8Array): LogMark | null {
    const found = parseSession(bytes).lines.filter((line): line is Entry => !isCorrupt(line));
    const foreign = found.filter((entry) => this.#view.tree.entry(entry.id) === null);
    if (foreign.length === 0) return null;
    this.#lookup.grew();
    const ours = this.#view.tree.tipId;
    const mark = this.#log.append(this.#view.size, foreign.map(encodeEntry));
    this.#view.reload();
    const note = `${foreign.length} entries that another program wrote to the working set were taken in`;
    this.#find("taken_in", note, foreign[0]?.id);
    // Theirs goes on from ours, or ours went on without them: then it stays the branch to go on with.
    const goesOn = ours === null || this.#view.tree.path().some((entry) => entry.id === ours);
    return goesOn ? mark : this.#append(this.#view.tree.planBranch(ours));
  }

  /** While we write ourselves, nobody else does. What was found under the log's name; `null`: it was not looked at. */
  #refresh(): DiskStat | null {
    if (this.#lock.isInUse) return null;
    const named = this.#settings.disk.stat(this.#paths.log);
    if (named === null) return null; // on its way into the trash: whoever writes is told
    if (this.#log.follow(named) || named.size !== this.#view.size) this.#reloadGrown();
    return named;
  }

  #reloadGrown(): void {
    this.#lookup.grew();
    this.#view.reload();
  }

  #find(code: DiagnosticCode, note: string, entryId?: string): void {
    this.#findings.push({ code, note, ...(entryId === undefined ? {} : { entryId }) });
  }
}

/** The text of a session's file as bytes. */
function* encoding(tree: SessionTree): Steps<Uint8Array> {
  const lines: Buffer[] = [];
  for (const line of tree.encodeLines()) {
    lines.push(Buffer.from(line));
    yield line.length;
  }
  return Buffer.concat(lines);
}

function idOf(paths: SessionPaths): string {
  return paths.working.slice(dirname(paths.working).length + 1, -".jsonl".length);
}
