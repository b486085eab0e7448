import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { isDiskFault, retryAdvice, SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import { spawnIdOf } from "../../core/keys.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Lookup } from "../../core/references.ts";
import { Slices } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { Scope } from "../contract.ts";
import { inScope, noSuchSession } from "../rules.ts";
import type { VersionedMeta } from "../session-meta.ts";
import { metaDraft } from "../session-meta.ts";
import type { DiskFile } from "./disk.ts";
import { isWriteFailure, withDiskCode } from "./disk.ts";
import { isForkWanted } from "./fork-claims.ts";
import type { IndexDb, IndexedPlace } from "./index-db.ts";
import { IndexFeed } from "./index-feed.ts";
import type { IndexService } from "./index-service.ts";
import type { SessionPaths } from "./layout.ts";
import {
  blobsFolder,
  removeLeftovers,
  sessionPaths,
  sessionsFolder,
  trashedPaths,
  writeOwner,
} from "./layout.ts";
import type { LogBranch } from "./log-branch.ts";
import { copiedLookup, encodingTree, readCopy } from "./log-branch.ts";
import { FileClosed } from "./log-file.ts";
import type { Recovery } from "./recover.ts";
import { removeSetAside } from "./recover.ts";
import type { SessionFileSettings, SessionFileSource } from "./session-file.ts";
import { SessionFile } from "./session-file.ts";
import { SessionMover } from "./session-files.ts";
import type { EntryLookup } from "./session-view.ts";
import type { LogSummary, SessionRow, WorkDb } from "./work-db.ts";
import { headerOf, isVisible } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";
import { WriteLock } from "./write-lock.ts";

interface CatalogSettings extends SessionFileSettings {
  readonly root: string;
  /** The folder that contains the databases. */
  readonly databases: string;
  readonly lock: LockSettings;
  /** Maximum number of open sessions. */
  readonly mostOpen: number;
  readonly report: (found: Recovery) => void;
}

/** The open session files, their claims in `work.db`, and the index built from them. */
export class SessionCatalog {
  readonly work: WorkDb;
  readonly index: IndexDb;
  readonly feed: IndexFeed;
  readonly mover: SessionMover;
  readonly settings: CatalogSettings;
  readonly #open: OpenFiles;
  readonly #trashing = new Map<string, Promise<void>>();

  constructor(work: WorkDb, index: IndexDb, service: IndexService, settings: CatalogSettings) {
    this.work = work;
    this.index = index;
    this.settings = settings;
    this.feed = new IndexFeed(work, service, settings.report);
    this.mover = new SessionMover(work, settings);
    this.#open = new OpenFiles(settings.mostOpen);
  }

  get newId(): IdSource {
    return this.settings.newId;
  }

  now(): number {
    return this.settings.clock.now();
  }

  pathsOf(row: SessionRow): SessionPaths {
    return row.state === "trashed"
      ? trashedPaths(this.settings.root, row.uid, row.sessionId)
      : sessionPaths(this.settings.root, row, row.sessionId);
  }

  /** Returns the cached row for a session that this process has locked. No other process can change that row. */
  rowInBurst(scope: Scope, sessionId: string): SessionRow | null {
    const row = this.work.lastKnown(scope.userId ?? null, sessionId);
    if (row === null || !isVisible(row) || !inScope(scope, row)) return null;
    return this.#open.isLocked(row.uid) ? row : null;
  }

  /** Records the owner of a home whose name does not identify its owner. */
  async recordOwner(home: string, userId: string | null): Promise<void> {
    await writeOwner(this.settings, home, userId);
  }

  /** Runs `act` with an open session file. Throws `not_found` if the session has been moved to the trash. */
  async using<T>(row: SessionRow, act: (file: SessionFile) => T | Promise<T>): Promise<T> {
    try {
      return await this.#open.using(row.uid, () => this.#openFiles(row), act);
    } catch (error) {
      if (!(error instanceof FileClosed)) throw error;
      const now = this.#visibleNow(row, error);
      return this.#open
        .using(row.uid, () => this.#openFiles(now), act)
        .catch((again: unknown) => {
          if (!(again instanceof FileClosed)) throw again;
          const problem = `Session ${this.#visibleNow(row, again).sessionId} is being moved`;
          throw new SkeinError("conflict", { problem, advice: retryAdvice }, { cause: again });
        });
    }
  }

  /** Throws `not_found` if the session has been moved to the trash. */
  #visibleNow(row: SessionRow, cause: FileClosed): SessionRow {
    const now = this.work.byUid(row.uid);
    if (now !== null && isVisible(now)) return now;
    const advice = "It was moved to the trash. Use `restore` to bring it back";
    throw new SkeinError("not_found", { what: "Session", name: row.sessionId, advice }, { cause });
  }

  /** Returns the sessions that a lookup might mean, in any state. */
  findRows(userId: string | null, lookup: Lookup): SessionRow[] {
    const { work } = this;
    const one = (row: SessionRow | null) => (row === null ? [] : [row]);
    switch (lookup.by) {
      case "key":
        return one(work.byKey(userId, lookup.key));
      case "sessionId":
        return one(work.byId(userId, lookup.sessionId));
      case "uid":
        return one(work.byUid(lookup.uid)).filter((row) => row.userId === userId);
      case "label":
        return one(work.byLabel(userId, lookup.agentId, lookup.label));
      case "spawnId":
        return work.bySpawnId(userId, lookup.spawnId).filter(({ key }) => spawnIdOf(key) === lookup.spawnId);
      case "prefix":
        return work.byIdPrefix(userId, lookup.prefix);
    }
  }

  /** Whether a session could not be opened because its log is missing or empty. */
  isLost(row: SessionRow, error: unknown): boolean {
    const { disk } = this.settings;
    const { log } = this.pathsOf(row);
    const isMissing = disk.kind(log) === null || (disk.kind(log) === "file" && disk.stat(log)?.size === 0);
    return isMissing && error instanceof SkeinError && error.code === "unreadable_file";
  }

  /** Returns what the index knows about a session's log, or `undefined` if the log is not indexed. */
  indexedSummary({ uid }: SessionRow): LogSummary | undefined {
    const fold = this.index.known(uid)?.fold;
    return fold && { ...fold, cwd: fold.header?.cwd ?? "" };
  }

  /**
   * Reads one entry at its indexed position, or by its ID if the log has changed. Returns `null` if it does not exist.
   * Opening a session reads the end of its log, so a closed session stays closed if possible.
   */
  async entry(row: SessionRow, id: string): Promise<Entry | null> {
    const place = this.index.place(row.uid, id);
    const found =
      place === null || this.#open.known(row.uid) !== null ? null : this.#entryOfClosed(row, id, place);
    if (found !== null) return found;
    return this.using(row, async (file) => {
      // Reading the tree reopens a file that another process has replaced.
      const loaded = file.recent.entry(id);
      if (loaded !== null) return loaded;
      const there = place === null ? null : entryIn(file.readLog(place.offset, place.length), id);
      if (there !== null) return there;
      await file.loadFor([id]);
      return file.entry(id);
    });
  }

  #entryOfClosed(row: SessionRow, id: string, place: IndexedPlace): Entry | null {
    const log = this.openLog(row);
    if (log === null) return null;
    try {
      return entryIn(log.read(place.offset, place.length), id);
    } finally {
      log.close();
    }
  }

  /** A value that changes only when an open session is written to. `null` if the session is not open. */
  markOf(uid: string): string | null {
    return this.#open.known(uid)?.mark ?? null;
  }

  /** Creates a session with entries. */
  create<T>(row: SessionRow, tree: SessionTree, act: (file: SessionFile) => T | Promise<T>): Promise<T> {
    Object.assign(tree.header, headerOf(row));
    const create = async () =>
      SessionFile.create(this.#sourceOf(row), [await new Slices().run(encodingTree(tree))]);
    return this.#usingNew(row, create, act);
  }

  /** Creates a session whose entries are the lines of a branch of another session. */
  copy<T>(
    row: SessionRow,
    branch: LogBranch,
    log: DiskFile,
    act: (file: SessionFile) => T | Promise<T>,
  ): Promise<T> {
    const source = this.#sourceOf(row);
    const header = headerOf(row);
    const identity = () => this.settings.disk.stat(source.paths.log)?.identity ?? "";
    const lookup = copiedLookup(source.lookup, branch, { header, meta: row.first.meta, identity });
    const create = () => SessionFile.create({ ...source, lookup }, readCopy(header, log, branch));
    return this.#usingNew(row, create, act);
  }

  /** Throws `not_found` if the session is purged while its files are being created. */
  async #usingNew<T>(
    row: SessionRow,
    create: () => Promise<SessionFile>,
    act: (file: SessionFile) => T | Promise<T>,
  ): Promise<T> {
    try {
      return await this.#open.using(row.uid, create, act);
    } catch (error) {
      if (error instanceof FileClosed) noSuchSession(row.sessionId);
      throw error;
    }
  }

  /** Opens a session's log for reading, independently of its open session file. */
  openLog(row: SessionRow): DiskFile | null {
    return this.settings.disk.openToRead(this.pathsOf(row).log);
  }

  /**
   * Marks the session and then moves its files, both under the lock. If the process crashes in between, the next start
   * completes the move. Returns `false` if another call is already moving it.
   */
  async trash(row: SessionRow, check: (log: LogSummary | undefined) => void): Promise<boolean> {
    const known = this.#trashing.get(row.uid);
    if (known !== undefined) {
      await known;
      return false;
    }
    const trashing = this.#moveToTrash(row, check).finally(() => this.#trashing.delete(row.uid));
    this.#trashing.set(row.uid, trashing);
    await trashing;
    return true;
  }

  async #moveToTrash(row: SessionRow, check: (log: LogSummary | undefined) => void): Promise<void> {
    const target = trashedPaths(this.settings.root, row.uid, row.sessionId);
    let isTrashed = false;
    const commit = (log: LogSummary | undefined) => {
      check(log);
      this.work.trash(row, (log ?? row.first).meta.spawnedBy, this.now());
      isTrashed = true;
    };
    try {
      await this.using(row, (file) => file.moveTo(target, () => commit(file.latest))).catch(
        async (error: unknown) => {
          if (isTrashed || !this.isLost(row, error)) throw error;
          await this.mover.moveLost(row, () => commit(this.indexedSummary(row)));
        },
      );
    } catch (error) {
      if (!isTrashed) throw error;
      // The session is in the trash because the commit in `work.db` is final.
      const note = `its files will be moved to the trash at the next start: ${(error as Error).message}`;
      this.settings.report({ kind: "not_taken_in", file: this.pathsOf(row).log, note });
    } finally {
      if (isTrashed) this.#open.drop(row.uid);
    }
    // If this fails, the session stays marked for the index.
    await this.feed.service.remove(row.uid).catch((error: unknown) => {
      if (!isDiskFault(error)) throw error;
    });
  }

  /**
   * Performs the last step of a permanent deletion: removes damaged databases and copies left by crashes, and erases
   * bytes in the databases. `names` are the names to look for in databases that were set aside.
   */
  async erase(rows: readonly SessionRow[], names: readonly string[]): Promise<void> {
    const { disk, root, databases, report } = this.settings;
    const folders = rows.flatMap((row) => [sessionsFolder(root, row), blobsFolder(root, row)]);
    for (const folder of new Set(folders)) removeLeftovers(disk, folder, this.now());
    removeSetAside(databases, names, report);
    await this.feed.erase(rows);
  }

  /** Closes idle session files and returns how many were closed. */
  closeIdle(): number {
    return this.#open.closeIdle();
  }

  /** Closes a session's files, which are about to be replaced. */
  drop(row: SessionRow): void {
    this.#open.drop(row.uid);
  }

  /** Writes to the logs any changes that were committed only in `work.db` before a crash. */
  async finishTodos(): Promise<void> {
    for (const row of this.work.withTodo()) {
      // A locked or lost session must not prevent other sessions from opening.
      await this.finishTodo(row).catch((error: unknown) =>
        this.settings.report({
          kind: "not_taken_in",
          file: this.pathsOf(row).log,
          note: `its new key could not be written to its log: ${(error as Error).message}`,
        }),
      );
    }
  }

  async finishTodo(row: SessionRow): Promise<VersionedMeta> {
    return this.using(row, async (file) => {
      const { todo } = row;
      if (todo !== null && file.meta.key !== todo.key) {
        await file.write((tree) => tree.plan([{ draft: metaDraft(row.uid, todo) }]), this.marking(row));
      }
      this.work.clearTodo(row.uid);
      return file.meta;
    });
  }

  /** Marks the session for the index before its log grows. */
  marking(row: SessionRow): { before: (isFirst: boolean) => void } {
    return { before: (isFirst) => this.feed.mark(row.uid, isFirst) };
  }

  /** Indexes a session that is in use. On a full disk, the index remains outdated. */
  async bringUp(row: SessionRow, file: SessionFile): Promise<void> {
    const known = this.index.knownBytes(row.uid);
    if (known !== null && known.logBytes === file.size && known.identity === file.identity) return;
    this.feed.markIfPossible(row.uid);
    try {
      await this.feed.service.bringUp(row.uid, file.size - (known?.logBytes ?? 0));
    } catch (error) {
      if (!isWriteFailure(error)) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#open.closeAll();
    await this.feed.close();
    this.work.close();
    this.index.close();
  }

  async #openFiles(row: SessionRow): Promise<SessionFile> {
    const first = row.state === "pending" ? headerOf(row) : null;
    const source = this.#sourceOf(row);
    const file = await SessionFile.open(source, first).catch((error: unknown) => {
      const code = first === null ? "unreadable_file" : "write_failed";
      const advice = "Check the disk and the permissions, then try again";
      throw withDiskCode(error, code, source.paths.log, advice);
    });
    const known = this.index.knownBytes(row.uid);
    const isIndexed = known === null || (known.logBytes === file.size && known.identity === file.identity);
    if (!isIndexed) source.lookup.grew();
    if (row.state === "pending") this.#markCreated(row.uid);
    return file;
  }

  /** On a full disk, the session stays pending, which does not prevent reading it. */
  #markCreated(uid: string): void {
    try {
      this.work.markCreated(uid);
    } catch (error) {
      if (!isWriteFailure(error)) throw error;
    }
  }

  #sourceOf(row: SessionRow): SessionFileSource {
    const { uid, state } = row;
    const isWanted = () => {
      // Another process might have released the fork's claim. The names are claimed again once the files exist.
      if (state === "forking") return isForkWanted(this.work, uid);
      const now = this.work.byUid(uid);
      return now !== null && now.state !== "trashed";
    };
    const paths = this.pathsOf(row);
    return {
      paths,
      lock: new WriteLock(paths.lock, this.settings.lock),
      owner: { uid, isWanted },
      lookup: this.#lookup(uid),
      settings: this.settings,
    };
  }

  #lookup(uid: string): EntryLookup {
    const { index } = this;
    return {
      known: () => index.known(uid),
      grew: () => this.feed.markIfPossible(uid),
      placeOf: (entryId) => index.place(uid, entryId),
      spanOf: (from, to) => index.span(uid, from, to),
      stateBehind: (entryId) => {
        const placed = index.placed(uid, entryId);
        return placed === null ? null : JSON.parse(index.state(uid, placed.state));
      },
    };
  }
}

/** Returns the entry if a line of a log is that entry. */
function entryIn(line: Uint8Array, id: string): Entry | null {
  const [entry] = parseSession(line).lines;
  return entry !== undefined && !isCorrupt(entry) && entry.id === id ? entry : null;
}

interface OpenFile {
  readonly opening: Promise<SessionFile>;
  file: SessionFile | null;
  users: number;
}

/** The maximum total size of logs in memory. Small logs are not counted. */
const mostBytes = 256 * 1024 * 1024;
const smallBytes = 1024 * 1024;

/** A bounded pool of open session files. Each session is open at most once. */
export class OpenFiles {
  readonly #most: number;
  /** Ordered from least to most recently used. */
  readonly #held = new Map<string, OpenFile>();
  readonly #closing = new Map<string, Promise<void>>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Opens a session or reuses an open one, and keeps it open while `work` runs. */
  async using<T>(
    uid: string,
    open: () => Promise<SessionFile>,
    work: (file: SessionFile) => T | Promise<T>,
  ): Promise<T> {
    for (let closing = this.#closing.get(uid); closing !== undefined; closing = this.#closing.get(uid))
      await closing;
    const held = this.#held.get(uid) ?? { opening: open(), file: null, users: 0 };
    this.#held.delete(uid);
    this.#held.set(uid, held);
    held.users += 1;
    try {
      held.file ??= await held.opening;
      return await work(held.file);
    } catch (error) {
      if (await isFailed(held.opening)) this.#forget(uid, held);
      // The files have moved, so the next caller must open them again.
      else if (error instanceof FileClosed && this.#held.get(uid) === held) this.#close(uid, held);
      throw error;
    } finally {
      held.users -= 1;
      if (this.#held.size > this.#most) this.#closeOldest();
      if ((held.file?.heldBytes ?? 0) > smallBytes) this.#makeRoom();
    }
  }

  isLocked(uid: string): boolean {
    return this.#held.get(uid)?.file?.isLocked === true;
  }

  /** Returns an open session and marks it as used. Returns `null` if it is not open. */
  known(uid: string): SessionFile | null {
    const held = this.#held.get(uid);
    if (held === undefined || held.file === null) return null;
    this.#held.delete(uid);
    this.#held.set(uid, held);
    return held.file;
  }

  /** Closes a session that has moved. Callers that are still using it receive an error. */
  drop(uid: string): void {
    const held = this.#held.get(uid);
    if (held !== undefined) this.#close(uid, held);
  }

  /** Closes every idle session and returns how many were closed. */
  closeIdle(): number {
    let count = 0;
    for (const [uid, held] of [...this.#held]) {
      // Releasing a lock needs a file descriptor, and there might be none left.
      if (held.users > 0 || held.file === null || held.file.isLocked) continue;
      this.#close(uid, held, held.file.close());
      count += 1;
    }
    return count;
  }

  async closeAll(): Promise<void> {
    for (const [uid, held] of [...this.#held]) this.#close(uid, held);
    await Promise.allSettled(this.#closing.values());
  }

  /** Limits the memory used by long logs that have been read in full. The most recently used log stays in memory. */
  #makeRoom(): void {
    let left = mostBytes;
    for (const [uid, held] of [...this.#held].reverse()) {
      const bytes = held.file?.heldBytes ?? 0;
      if (bytes <= smallBytes) continue;
      const isFirst = left === mostBytes;
      left -= bytes;
      if (left < 0 && !isFirst && held.users === 0) this.#close(uid, held);
    }
  }

  #closeOldest(): void {
    for (const [uid, held] of this.#held) {
      if (held.users > 0) continue;
      this.#close(uid, held);
      return;
    }
  }

  #close(uid: string, held: OpenFile, closed = held.opening.then((file) => file.close())): void {
    this.#forget(uid, held);
    const closing = closed
      // The file failed to open, or its lock could not be released. No data is lost.
      .catch(() => undefined)
      .finally(() => {
        if (this.#closing.get(uid) === closing) this.#closing.delete(uid);
      });
    this.#closing.set(uid, closing);
  }

  #forget(uid: string, held: OpenFile): void {
    if (this.#held.get(uid) === held) this.#held.delete(uid);
  }
}

function isFailed(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => false,
    () => true,
  );
}
