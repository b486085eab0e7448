import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { Scope } from "../contract.ts";
import { inScope } from "../rules.ts";
import type { VersionedMeta } from "../session-meta.ts";
import { metaDraft } from "../session-meta.ts";
import { isWriteFailure } from "./disk.ts";
import type { IndexDb } from "./index-db.ts";
import { IndexFeed } from "./index-feed.ts";
import type { IndexService } from "./index-service.ts";
import type { SessionPaths } from "./layout.ts";
import {
  blobsFolder,
  noteOwner,
  removeLeftovers,
  sessionPaths,
  sessionsFolder,
  trashedPaths,
} from "./layout.ts";
import { FileClosed } from "./log-file.ts";
import type { Recovery } from "./recover.ts";
import { removeSetAside } from "./recover.ts";
import type { SessionFileSettings } from "./session-file.ts";
import { SessionFile } from "./session-file.ts";
import type { FileOwner } from "./session-files.ts";
import { Moves } from "./session-files.ts";
import type { EntryLookup } from "./session-view.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { headerOf, isThere } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";
import { WriteLock } from "./write-lock.ts";

interface CatalogSettings extends SessionFileSettings {
  readonly root: string;
  /** The folder of the databases. */
  readonly databases: string;
  readonly lock: LockSettings;
  /** How many sessions are kept open. */
  readonly mostOpen: number;
  readonly report: (found: Recovery) => void;
}

/** The open sessions, what is taken, and the index that follows them. */
export class SessionCatalog {
  readonly work: WorkDb;
  readonly index: IndexDb;
  readonly feed: IndexFeed;
  readonly moves: Moves;
  readonly settings: CatalogSettings;
  readonly #open: OpenFiles;
  readonly #trashing = new Map<string, Promise<void>>();

  constructor(work: WorkDb, index: IndexDb, service: IndexService, settings: CatalogSettings) {
    this.work = work;
    this.index = index;
    this.settings = settings;
    this.feed = new IndexFeed(work, service, settings.report);
    this.moves = new Moves(work, settings);
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

  /** The row of a session that we have the lock of: nobody can take it away meanwhile, so nobody need be asked. */
  rowInBurst(scope: Scope, sessionId: string): SessionRow | null {
    const row = this.work.lastKnown(scope.userId ?? null, sessionId);
    if (row === null || !isThere(row) || !inScope(scope, row)) return null;
    return this.#open.isLocked(row.uid) ? row : null;
  }

  /** A user whose folder's name does not name them is written down in it, before anything else is there. */
  async knowUser(home: string, userId: string | null): Promise<void> {
    await noteOwner(this.settings, home, userId);
  }

  /** Does something with a session's file, open as long as that takes. One that was put away meanwhile is not found. */
  async using<T>(row: SessionRow, act: (file: SessionFile) => T | Promise<T>): Promise<T> {
    try {
      return await this.#open.using(row.uid, () => this.#openFiles(row), act);
    } catch (error) {
      if (!(error instanceof FileClosed)) throw error;
      const now = this.work.byUid(row.uid);
      if (now !== null && isThere(now)) return this.#open.using(row.uid, () => this.#openFiles(now), act);
      const advice = "It went into the trash meanwhile; `restore` brings it back";
      throw new SkeinError("not_found", { what: "Session", name: row.sessionId, advice }, { cause: error });
    }
  }

  /** The same text for as long as nobody writes to an open session; `null`: it is not open. */
  markOf(uid: string): string | null {
    return this.#open.known(uid)?.mark ?? null;
  }

  /** A session that begins with entries; its header says what its row says. */
  create<T>(row: SessionRow, tree: SessionTree, act: (file: SessionFile) => T | Promise<T>): Promise<T> {
    Object.assign(tree.header, headerOf(row));
    const make = () =>
      SessionFile.create(
        this.pathsOf(row),
        this.#lockOf(row),
        tree,
        this.#ownerOf(row),
        this.#lookup(row.uid),
        this.settings,
      );
    return this.#open.using(row.uid, make, act);
  }

  /**
   * Marked first, moved then, both under the lock: a crash in between is finished at the next start. `false`: somebody
   * else here is at it.
   */
  async trash(row: SessionRow, check: (file: SessionFile) => void): Promise<boolean> {
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

  async #moveToTrash(row: SessionRow, check: (file: SessionFile) => void): Promise<void> {
    const target = trashedPaths(this.settings.root, row.uid, row.sessionId);
    await this.using(row, (file) =>
      file.moveTo(target, () => {
        check(file);
        this.work.trash(row, file.meta.meta.spawnedBy, this.now());
      }),
    );
    this.#open.drop(row.uid);
    await this.feed.service.remove(row.uid);
  }

  /**
   * The last step of what is done for good: nothing of these sessions is left in copies that a crash or a damaged database left
   * behind, nor in the bytes of the databases. `names`: what a database that was set aside would know them by.
   */
  async erase(rows: readonly SessionRow[], names: readonly string[]): Promise<void> {
    const { disk, root, databases, report } = this.settings;
    const folders = rows.flatMap((row) => [sessionsFolder(root, row), blobsFolder(root, row)]);
    for (const folder of new Set(folders)) removeLeftovers(disk, folder, this.now());
    removeSetAside(databases, names, report);
    await this.feed.erase(rows);
  }

  /** Closes the files of sessions that are not in use, and returns how many. */
  closeIdle(): number {
    return this.#open.closeIdle();
  }

  /** Lets go of a session's files, which somebody is about to replace. */
  drop(row: SessionRow): void {
    this.#open.drop(row.uid);
  }

  /** Tells logs of changes that were decided in `work.db` and cut off by a crash. */
  async finishTodos(): Promise<void> {
    for (const row of this.work.withTodo()) {
      // One session that is locked or lost must not keep the others from being opened.
      await this.finishTodo(row).catch((error: unknown) =>
        this.settings.report({
          kind: "not_taken_in",
          file: this.pathsOf(row).log,
          note: `its log was not told of its new key: ${(error as Error).message}`,
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
      this.work.todoDone(row.uid);
      return file.meta;
    });
  }

  /** Before a log grows, the index is marked as possibly behind. */
  marking(row: SessionRow): { before: (isFirst: boolean) => void } {
    return { before: (isFirst) => this.feed.mark(row.uid, isFirst) };
  }

  /** Makes sure that the index has all of a session that is in use; on a full disk it stays behind. */
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
    const lookup = this.#lookup(row.uid);
    const owner = this.#ownerOf(row);
    const lock = this.#lockOf(row);
    const file = await SessionFile.open(this.pathsOf(row), lock, first, owner, lookup, this.settings);
    const known = this.index.knownBytes(row.uid);
    if (known !== null && (known.logBytes !== file.size || known.identity !== file.identity)) lookup.grew();
    if (row.state === "pending") this.#noteMade(row.uid);
    return file;
  }

  /** One that still counts as pending finds its files there, so that a full disk keeps nobody from reading them. */
  #noteMade(uid: string): void {
    try {
      this.work.made(uid);
    } catch (error) {
      if (!isWriteFailure(error)) throw error;
    }
  }

  #ownerOf({ uid, state }: SessionRow): FileOwner {
    return {
      uid,
      isWanted: () => {
        const now = this.work.byUid(uid);
        // The claim of a fork may have been given back for dead; it is taken again once the files are made.
        return now === null ? state === "forking" : now.state !== "trashed";
      },
    };
  }

  #lockOf(row: SessionRow): WriteLock {
    return new WriteLock(this.pathsOf(row).lock, this.settings.lock);
  }

  #lookup(uid: string): EntryLookup {
    const { index } = this;
    return {
      has: (entryId, amongFirst) => {
        const known = index.known(uid);
        if (known === null || known.fold.digest.entries < amongFirst) return null;
        const place = index.place(uid, entryId);
        return place !== null && place.position < amongFirst;
      },
      known: () => index.known(uid),
      grew: () => this.feed.markIfPossible(uid),
      placeOf: (entryId) => index.place(uid, entryId),
      stateBehind: (entryId) => {
        const placed = index.placed(uid, entryId);
        return placed === null ? null : JSON.parse(index.state(uid, placed.state));
      },
    };
  }
}

interface Held {
  readonly opening: Promise<SessionFile>;
  file: SessionFile | null;
  users: number;
}

/** Of logs that are in memory whole, all together; short ones do not count. */
const mostBytes = 256 * 1024 * 1024;
const smallBytes = 1024 * 1024;

/** Sessions that are open, no more than so many, but for those in use. Each is open once. */
export class OpenFiles {
  readonly #most: number;
  /** In the order of use, the oldest first. */
  readonly #held = new Map<string, Held>();
  readonly #closing = new Map<string, Promise<void>>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Opens a session, or takes the open one, and keeps it open until the work with it is done. */
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
      throw error;
    } finally {
      held.users -= 1;
      if (this.#held.size > this.#most) this.#closeOldest();
      if ((held.file?.heldBytes ?? 0) > smallBytes) this.#makeRoom();
    }
  }

  /** Whether we have the lock of a session's files. */
  isLocked(uid: string): boolean {
    return this.#held.get(uid)?.file?.isLocked === true;
  }

  /** An open session, which is looked at and counts as used; `null`: it is not open. */
  known(uid: string): SessionFile | null {
    const held = this.#held.get(uid);
    if (held === undefined || held.file === null) return null;
    this.#held.delete(uid);
    this.#held.set(uid, held);
    return held.file;
  }

  /** Lets go of a session that has gone elsewhere; those who still have it are told so by it. */
  drop(uid: string): void {
    const held = this.#held.get(uid);
    if (held !== undefined) this.#close(uid, held);
  }

  /** Closes every session that is not in use, at once, and returns how many. */
  closeIdle(): number {
    let count = 0;
    for (const [uid, held] of [...this.#held]) {
      // To give back a lock takes a descriptor, which there may not be.
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

  /** Long logs that were read whole are in memory no longer than there is room for them; the one that was used last stays. */
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

  #close(uid: string, held: Held, closed = held.opening.then((file) => file.close())): void {
    this.#forget(uid, held);
    const closing = closed
      // It never opened, or the disk did not let go of its lock: there is nobody to tell, and nothing is lost.
      .catch(() => undefined)
      .finally(() => {
        if (this.#closing.get(uid) === closing) this.#closing.delete(uid);
      });
    this.#closing.set(uid, closing);
  }

  #forget(uid: string, held: Held): void {
    if (this.#held.get(uid) === held) this.#held.delete(uid);
  }
}

function isFailed(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => false,
    () => true,
  );
}
