import { dirname } from "node:path";
import { Mutex } from "../../core/concurrency.ts";
import type { ContextOptions, SessionContext } from "../../core/context.ts";
import type { Diagnostic, DiagnosticCode } from "../../core/diagnostics.ts";
import type { Entry, SessionHeader } from "../../core/entries.ts";
import { encodeEntry, isCorrupt } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Plan } from "../../core/plan.ts";
import { Slices } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { VersionedMeta } from "../session-meta.ts";
import type { Disk, DiskFile, DiskStat } from "./disk.ts";
import { replaceWhole } from "./disk.ts";
import type { SessionPaths } from "./layout.ts";
import type { LogBranch } from "./log-branch.ts";
import { encodeHeader, findingBranch } from "./log-branch.ts";
import type { LogMark } from "./log-file.ts";
import { FileClosed, LogFile } from "./log-file.ts";
import type { NewSessionFiles } from "./session-files.ts";
import { beginFiles, missingLog, moveSession } from "./session-files.ts";
import type { EntryLookup, ViewSettings } from "./session-view.ts";
import { SessionView } from "./session-view.ts";
import type { LogSummary } from "./work-db.ts";
import { cutWorkingSet, WorkingFile } from "./working-set.ts";
import { BurstLock } from "./write-lock.ts";

export interface SessionFileSettings extends ViewSettings {
  readonly disk: Disk;
  /** `full` acknowledges a write once it is on disk. `os` acknowledges it once it is in the kernel. */
  readonly durability: "full" | "os";
}

/** A session's files, with their claim and the index of their entries. */
export interface SessionFileSource extends NewSessionFiles {
  readonly lookup: EntryLookup;
  readonly settings: SessionFileSettings;
}

interface WriteOptions {
  readonly fence?: () => boolean;
  /** How long to wait for the lock, if that is shorter than usual. */
  readonly lockTimeoutMs?: number;
  /** Called under the lock before a write. `isFirst` is `true` for the first write since the lock was acquired. */
  readonly before?: (isFirst: boolean) => void;
  /** IDs that the plan refers to. They might be outside the loaded part. */
  readonly needs?: readonly string[];
}

/** Longer contexts are read in chunks. */
const longBudget = 16 * 1024 * 1024;

/**
 * A session on disk. It consists of an append-only log and a working set. The working set is a hard link to the log
 * until the first compaction and a separate file afterward. Opening a session reads the working set. The rest of the
 * log is read on demand.
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
  /** Pending syncs and truncations, or `null` if there are none. Never rejects. */
  #settling: Promise<unknown> | null = null;
  /** `true` if nothing has been written since the lock was acquired. */
  #isFirst = true;

  private constructor({ paths, lock, lookup, settings }: SessionFileSource, log: DiskFile) {
    this.#paths = paths;
    this.#settings = settings;
    this.#lock = new BurstLock(lock, (note) => this.#find("lock_kept", note));
    this.#log = new LogFile(paths.log, settings.disk, log, (note) => this.#find("not_cut_back", note));
    this.#working = new WorkingFile(paths.working, settings.disk, this.#log);
    this.#lookup = lookup;
    this.#view = new SessionView(idOf(paths), this.#log, this.#working, lookup, settings);
  }

  /** Opens a session's files. `first` is the header of a session whose files do not exist yet. */
  static async open(source: SessionFileSource, first: SessionHeader | null): Promise<SessionFile> {
    const { paths, settings } = source;
    const { disk } = settings;
    let handle = disk.openExisting(paths.log);
    if (handle === null || handle.size() === 0) {
      handle?.close();
      await beginFiles(source, first === null ? null : [encodeHeader(first)]);
      handle = disk.openExisting(paths.log);
    }
    if (handle === null) throw missingLog(paths.log);
    try {
      const file = new SessionFile(source, handle);
      await file.#view.load();
      if (!file.#working.isInLine() || file.#isUncut()) await file.#bringInLine();
      return file;
    } catch (error) {
      handle.close();
      throw error;
    }
  }

  /** Creates a session with entries. Its log consists of the given parts. */
  static async create(source: SessionFileSource, parts: Iterable<Uint8Array>): Promise<SessionFile> {
    await beginFiles(source, parts);
    return SessionFile.open(source, null);
  }

  /** Contains at least the model's context, including entries that other processes have written. */
  get recent(): SessionTree {
    this.#refresh();
    return this.#view.tree;
  }

  /** Whether this process holds the write lock. */
  get isLocked(): boolean {
    return this.#lock.isHeld && !this.#isMoved && !this.#isClosed;
  }

  /** The leaf after this process's last write. */
  get leafId(): string | null {
    return this.#view.tree.leafId;
  }

  /** The tree of the whole log. */
  get whole(): SessionTree {
    this.#refresh();
    this.#view.loadAll();
    return this.#view.tree;
  }

  /** Loads a long log in chunks so that `whole` does not block. */
  loadWhole(): Promise<void> {
    this.#refresh();
    return this.#unlessMoved(this.#view.loadAllInSlices());
  }

  /** Returns where the branch that ends with an entry is in the log. `null` if only the tree shows that. */
  findBranch(entryId: string): Promise<LogBranch | null> {
    this.#refresh();
    return this.#unlessMoved(new Slices().run(findingBranch(this.#log, this.#lookup, entryId)));
  }

  /** Throws `FileClosed` if the files were closed or moved during a read in chunks. */
  async #unlessMoved<T>(reading: Promise<T>): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      if (this.#isClosed || this.#isMoved) throw new FileClosed();
      throw error;
    }
  }

  /**
   * Loads the whole log if one of these entries might be outside the loaded part. Returns `null` if that is not
   * necessary.
   */
  loadFor(ids: readonly string[]): Promise<void> | null {
    if (ids.length === 0) return null;
    this.#refresh();
    return ids.some((id) => this.#view.mayLeaveOut(id)) ? this.loadWhole() : null;
  }

  /** Loads the whole log for a context that needs it. */
  async loadForContext({ byteBudget = Number.POSITIVE_INFINITY }: ContextOptions): Promise<void> {
    this.#refresh();
    if (this.#view.isTail && byteBudget > longBudget) await this.loadWhole();
  }

  /** The size of the log if all of it is in memory, otherwise 0. */
  get heldBytes(): number {
    return this.#view.isWhole ? this.#view.size : 0;
  }

  /** Returns `null` if the entry does not exist. */
  entry(id: string): Entry | null {
    this.#refresh();
    return this.#view.entry(id);
  }

  /** Reads no more of a long log than the byte budget needs. */
  context(options: ContextOptions): SessionContext {
    this.#refresh();
    const context = this.#view.context(options);
    return { ...context, diagnostics: [...context.diagnostics, ...this.#findings] };
  }

  get identity(): string {
    return this.#log.identity;
  }

  /** Reads bytes from the log, up to the loaded size. */
  readLog(offset: number, length = this.#view.size - offset): Uint8Array {
    return this.#log.read(offset, length);
  }

  /**
   * A value that changes when the log is written to or replaced. Anything read afterward is at least as new. `null` if
   * the value is unknown because this process is writing or the session has moved.
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

  /** The loaded size of the log. An index with this size is up to date. */
  get size(): number {
    return this.#view.size;
  }

  /** Returns a consistent summary with a single check of the file. */
  get latest(): LogSummary {
    this.#refresh();
    const { tree, meta, saidAt } = this.#view;
    const { name, leafId } = tree;
    return { cwd: tree.header.cwd ?? "", meta: meta.meta, version: meta.version, name, saidAt, leafId };
  }

  /** Writes the plan that `make` returns, and resolves once it is stored. A failed write changes nothing. */
  write(make: (tree: SessionTree) => Plan, options: WriteOptions = {}): Promise<Plan> {
    if (this.#isClosed || this.#isMoved) return Promise.reject(new FileClosed());
    // Within a burst and with an empty queue, there is nothing to wait for.
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
      await this.#lock.hold(() => this.#readIn(), options.lockTimeoutMs);
      try {
        return this.#planAndAppend(make, options);
      } catch (error) {
        this.#lock.letGo();
        throw error;
      }
    });
    return this.#settleAndLetGo(plan, mark, recut);
  }

  /** Acknowledges writes in log order, regardless of what each write is waiting for. */
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
   * Replaces the whole log under the lock. The working set is deleted first because it might contain content that must
   * be removed. It is rebuilt from the log. If `make` returns `null`, nothing changes.
   */
  rewrite(make: (bytes: Uint8Array) => Promise<Uint8Array | null>): Promise<void> {
    return this.#track(
      this.#mutex.run(async () => {
        this.#checkOpen();
        await this.#lock.hold(() => this.#readIn());
        try {
          // Unsynced appends are part of these bytes and are synced with them.
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
    await replaceWhole(disk, this.#paths.log, bytes, newId(), (rename) => {
      this.#checkOpen();
      if (!this.#lock.isHeld) throw new FileClosed();
      disk.unlink(this.#paths.working);
      rename();
    });
    this.#log.followName();
    const isLog = wasLog && disk.link(this.#paths.log, this.#paths.working);
    // Must come before the first await so that a reader that reads in chunks notices the replacement.
    await this.#view.load(Slices.underLock());
    if (isLog) await disk.syncFolder(this.#paths.folder);
    else await this.#cut();
  }

  #checkOpen(): void {
    if (this.#isMoved || this.#isClosed) throw new FileClosed();
  }

  /** Waits for pending writes and closes the files. */
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

  /** Moves the files to another folder under the lock. The object cannot be used afterward. */
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

  /** Updates the working set without waiting for the lock. The log is complete, and the next write catches up. */
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
      this.#find("working_set_behind", `the working set could not be created: ${(error as Error).message}`);
    }
  }

  /**
   * Whether the working set is still the whole log even though the branch has a compaction. This happens if the session
   * was adopted, forked, or compacted by another program.
   */
  #isUncut(): boolean {
    if (!this.#view.isWhole) return false;
    return this.#view.tree.path().some((entry) => entry.type === "compaction") && this.#working.isLog();
  }

  #planAndAppend(
    make: (tree: SessionTree) => Plan,
    options: WriteOptions,
  ): { plan: Plan; mark: LogMark | null; recut: boolean } {
    this.#rollBack();
    if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId: this.#view.tree.header.id });
    if (options.needs?.some((id) => this.#view.mayLeaveOut(id))) this.#view.loadAll();
    const tip = this.#view.tree.tipId;
    const plan = make(this.#view.tree);
    const first = plan.nodes[0];
    if (first === undefined) return { plan, mark: null, recut: false };
    options.before?.(this.#isFirst);
    this.#isFirst = false;
    // A new branch can start at an entry outside the working set.
    const moves = (first.parent?.entry.id ?? null) !== tip;
    const compacts = plan.nodes.some(({ entry }) => entry.type === "compaction");
    const recut = compacts || (moves && this.#working.isOwnFile);
    return { plan, mark: this.#append(plan), recut };
  }

  /** Appends a plan's lines to the log, and its entries to the tree. */
  #append(plan: Plan): LogMark {
    const mark = this.#log.append(this.#view.size, plan.lines);
    if (mark.end === mark.start + mark.bytes) {
      this.#view.commit(plan, mark.end);
      return mark;
    }
    // Another program was writing at the same time, so this process's lines might have been appended to an incomplete
    // line. Lost lines are written again.
    this.#view.reload();
    this.#view.loadAll();
    const lost = plan.lines.filter(
      (_, index) => this.#view.tree.entry(plan.nodes[index]?.entry.id ?? "") === null,
    );
    if (lost.length === 0) return mark;
    const again = this.#log.append(this.#view.size, lost);
    this.#view.reload();
    return again;
  }

  /** Waits for the sync, then updates the working set. */
  async #settle(mark: LogMark, recut: boolean): Promise<void> {
    if (this.#settings.durability === "full" || recut) {
      try {
        await this.#log.waitForSync(mark);
      } catch (error) {
        await this.#mutex.run(async () => this.#rollBack());
        throw error;
      }
    }
    if (recut) await this.#mutex.run(async () => void (this.#isMoved || (await this.#cut())));
    else this.#follow(mark);
  }

  #follow(mark: LogMark): void {
    this.#log.markStored(mark);
    const problem = this.#working.follow(mark.end);
    if (problem !== null) this.#find("working_set_behind", problem);
  }

  #rollBack(): void {
    if (this.#log.rollBack()) this.#view.reload();
  }

  /** Reads what other processes have written while this process did not hold the lock. */
  async #readIn(): Promise<void> {
    this.#isFirst = true;
    if (this.#log.followName() || this.#log.size !== this.#view.size) this.#reloadGrown();
    if (this.#working.isUntouched(this.#view.size)) return;
    this.#view.loadAll();
    const bytes = this.#working.readWhole();
    const taken = bytes === null ? null : this.#takeIn(bytes);
    // The working set might be the only other copy, and it is about to be replaced.
    if (taken !== null) await this.#log.waitForSync(taken);
    if (this.#working.adopt(bytes, this.#settings) === null && !this.#working.isLog()) await this.#cut();
  }

  /** Replaces the working set with a new one, built from the log. */
  async #cut(): Promise<void> {
    for (;;) {
      await this.#view.loadAllUnderLock();
      this.#view.loadAll();
      const text = cutWorkingSet(this.#view.tree, this.#view.size, this.#view.meta);
      const late = await this.#working.replace(text, this.#view.size, this.#settings.newId());
      const taken = late === null ? null : this.#takeIn(late);
      if (taken === null) return;
      await this.#log.waitForSync(taken);
    }
  }

  /** Copies lines that another program (pi, OpenClaw) appended to the working set into the log. */
  #takeIn(bytes: Uint8Array): LogMark | null {
    const found = parseSession(bytes).lines.filter((line): line is Entry => !isCorrupt(line));
    const foreign = found.filter((entry) => this.#view.tree.entry(entry.id) === null);
    if (foreign.length === 0) return null;
    this.#lookup.grew();
    const ours = this.#view.tree.tipId;
    const mark = this.#log.append(this.#view.size, foreign.map(encodeEntry));
    this.#view.reload();
    const note = `${foreign.length} entries that another program wrote to the working set were copied into the log`;
    this.#find("taken_in", note, foreign[0]?.id);
    // If the other program's branch does not continue the active branch, the active branch stays the same.
    const goesOn = ours === null || this.#view.tree.path().some((entry) => entry.id === ours);
    return goesOn ? mark : this.#append(this.#view.tree.planBranch(ours));
  }

  /**
   * Reads the log again if another process has changed it. Skipped while this process is writing, because no other
   * process can write at that time. Returns the status of the file at the log's path, or `null` if it was not checked.
   */
  #refresh(): DiskStat | null {
    if (this.#lock.isInUse) return null;
    const named = this.#settings.disk.stat(this.#paths.log);
    if (named === null) return null; // It is being moved to the trash. The next write reports that.
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

function idOf(paths: SessionPaths): string {
  return paths.working.slice(dirname(paths.working).length + 1, -".jsonl".length);
}
