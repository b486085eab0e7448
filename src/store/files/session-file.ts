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
import type { Disk, DiskFile } from "./disk.ts";
import { appendWhole, makeFolderDurably, readWhole, replaceWhole } from "./disk-files.ts";
import { GroupSync } from "./group-sync.ts";
import type { SessionPaths } from "./layout.ts";
import { Mutex } from "./mutex.ts";
import type { VersionedMeta } from "./session-meta.ts";
import { metaOf } from "./session-meta.ts";
import { cutMarksOf, cutWorkingSet } from "./working-set.ts";
import type { WriteLock } from "./write-lock.ts";

export interface SessionFileSettings {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly newId: IdSource;
  /** `full`: on the disk before it is acknowledged. `os`: with the kernel. */
  readonly durability: "full" | "os";
}

/** A burst of appends keeps the lock over gaps as long as this. */
const burstMs = 20;
const retryReleaseMs = 1000;
const lineBreak = 0x0a;

/**
 * One session on disk: its log, to which everything is appended, and its working set, a second name of the log until
 * the first compaction and then a file of its own that follows it.
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
  /** As far as the log is in the working set, and where that then ends. */
  #mirrored = 0;
  #workingEnd = 0;
  /** Where the first append begins that is not on the disk yet. */
  #unsynced: number | null = null;
  #tree: SessionTree;
  #meta: VersionedMeta;
  #pins = 0;
  #releasing: NodeJS.Timeout | null = null;

  private constructor(paths: SessionPaths, lock: WriteLock, log: DiskFile, settings: SessionFileSettings) {
    this.#paths = paths;
    this.#lock = lock;
    this.#settings = settings;
    this.#log = log;
    this.#sync = new GroupSync(() => this.#log.sync());
    this.#tree = this.#read();
    this.#meta = metaOf(this.#tree.header, this.#tree.entries());
  }

  /** Opens a session's files; those of a session that was accepted and never written are made from its header. */
  static async open(
    paths: SessionPaths,
    lock: WriteLock,
    header: SessionHeader,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    const { disk } = settings;
    const there = disk.stat(paths.log);
    if (there === null || there.size === 0) await begin(paths, lock, `${JSON.stringify(header)}\n`, settings);
    const log = disk.openExisting(paths.log);
    if (log === null) throw failed(paths.log, "it is gone", "Restore it from a backup");
    const file = new SessionFile(paths, lock, log, settings);
    const inLine =
      disk.stat(paths.working)?.identity === log.stat().identity ||
      file.#isEqualTo(readWhole(disk, paths.working));
    if (!inLine) await file.write((tree) => tree.plan([]));
    return file;
  }

  /** A new session with these entries already in it. */
  static async create(
    paths: SessionPaths,
    lock: WriteLock,
    tree: SessionTree,
    settings: SessionFileSettings,
  ): Promise<SessionFile> {
    await begin(paths, lock, tree.encode(), settings);
    return SessionFile.open(paths, lock, tree.header, settings);
  }

  /** Everything in the log, what other processes have written since included. */
  get tree(): SessionTree {
    this.#refresh();
    return this.#tree;
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

  /**
   * Writes what `make` plans, and resolves when it is kept. `before` runs under the lock once it is known that there
   * is something to write. A failed write changes nothing.
   */
  async write(
    make: (tree: SessionTree) => Plan,
    options: { fence?: () => boolean; before?: () => void } = {},
  ): Promise<Plan> {
    const written = await this.#mutex.run(async () => {
      await this.#hold();
      try {
        if (options.fence?.() === false) throw new SkeinError("fenced", { sessionId: this.#tree.header.id });
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
    if (this.#releasing !== null) clearTimeout(this.#releasing);
    this.#releasing = null;
    if (this.#lock.isHeld) return;
    try {
      await this.#lock.acquire();
      this.#checkNames();
      if (this.#log.stat().size !== this.#size) this.#reload();
      await this.#reconcile();
    } catch (error) {
      this.#unpin();
      throw error;
    }
  }

  #unpin(): void {
    this.#pins -= 1;
    if (this.#pins > 0 || !this.#lock.isHeld) return;
    this.#releasing = setTimeout(() => this.#release(), this.#lock.isWanted() ? 0 : burstMs);
  }

  /** A disk that does not even let go of a lock is told of, and asked again. */
  #release(): void {
    try {
      this.#lock.release();
    } catch (error) {
      this.#findings.push({
        code: "lock_kept",
        note: `the lock could not be removed: ${(error as Error).message}`,
      });
      this.#releasing = setTimeout(() => this.#release(), retryReleaseMs).unref();
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
    const torn = start > 0 && this.#log.read(start - 1, 1)[0] !== lineBreak;
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
    const end = this.#log.stat().size;
    if (end === start + bytes.length) {
      this.#tree.commit(plan);
      this.#size = end;
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
    if (this.#log.stat().size === this.#size) this.#cutBack(this.#unsynced, this.#size);
    this.#unsynced = null;
    this.#log.close();
    this.#log = this.#settings.disk.open(this.#paths.log);
    this.#reload();
  }

  /** Cuts the log back to where our bytes began, unless somebody else wrote behind them. `false`: they are still there. */
  #cutBack(start: number, end: number): boolean {
    try {
      const { size } = this.#log.stat();
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
    const text = cutWorkingSet(this.#tree, this.#size);
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
    if (bytes !== null) this.#takeIn(bytes);
    if (this.#isEqualTo(bytes)) {
      this.#working?.close();
      this.#working = disk.openExisting(this.#paths.working);
      return;
    }
    await this.#cut();
  }

  /** Whether a working set says what the log says: its own lines at the cut, then the log's bytes behind it. */
  #isEqualTo(bytes: Uint8Array | null): boolean {
    if (bytes === null) return false;
    const headerEnd = bytes.indexOf(lineBreak) + 1;
    const marks = cutMarksOf(parseSession(bytes.subarray(0, headerEnd)).header) ?? {
      logBytes: 0,
      ownBytes: -headerEnd,
    };
    const tail = bytes.subarray(headerEnd + marks.ownBytes);
    const expected = this.#log.read(marks.logBytes, Math.max(0, this.#size - marks.logBytes));
    if (Buffer.compare(tail, expected) !== 0) return false;
    // The same bytes are not enough where the leaf moved to an entry that was left out, and a crash came before the cut.
    const { diagnostics } = SessionTree.from(parseSession(bytes));
    if (diagnostics.some(({ code }) => code === "missing_parent")) return false;
    this.#mirrored = this.#size;
    this.#workingEnd = bytes.length;
    return true;
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
    if (this.#pins === 0 && this.#log.stat().size !== this.#size) this.#reload();
  }

  #reload(): void {
    this.#tree = this.#read();
    this.#meta = metaOf(this.#tree.header, this.#tree.entries());
  }

  #read(): SessionTree {
    const { clock, newId } = this.#settings;
    const { size } = this.#log.stat();
    const bytes = this.#log.read(0, size);
    this.#size = bytes.length;
    return SessionTree.from(parseSession(bytes), { clock, newId, lostHeader: { id: idOf(this.#paths) } });
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
