import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { SessionTree } from "../../core/tree.ts";
import { inScope } from "../changes.ts";
import type { Scope } from "../contract.ts";
import type { VersionedMeta } from "../session-meta.ts";
import { metaDraft } from "../session-meta.ts";
import { isWriteFailure } from "./disk.ts";
import { removeLeftovers } from "./folders.ts";
import { noteOwner } from "./home-owner.ts";
import type { IndexDb } from "./index-db.ts";
import { IndexFeed } from "./index-feed.ts";
import type { IndexService } from "./index-service.ts";
import type { SessionPaths } from "./layout.ts";
import { blobsFolder, sessionPaths, sessionsFolder, trashedPaths } from "./layout.ts";
import { FileClosed } from "./log-file.ts";
import { Moves } from "./moves.ts";
import { OpenFiles } from "./open-files.ts";
import type { Recovery } from "./recover.ts";
import { removeSetAside } from "./recover.ts";
import type { SessionFileSettings } from "./session-file.ts";
import { SessionFile } from "./session-file.ts";
import type { FileOwner } from "./session-files.ts";
import { headerOf } from "./session-record.ts";
import type { EntryLookup } from "./session-view.ts";
import type { SessionPlace, SessionRow, WorkDb } from "./work-db.ts";
import { isThere } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";
import { WriteLock } from "./write-lock.ts";

export interface CatalogueSettings extends SessionFileSettings {
  readonly root: string;
  /** The folder of the databases. */
  readonly databases: string;
  readonly lock: LockSettings;
  /** How many sessions are kept open. */
  readonly mostOpen: number;
  readonly report: (found: Recovery) => void;
}

/** The open sessions, what is taken, and the index that follows them. */
export class SessionCatalogue {
  readonly work: WorkDb;
  readonly index: IndexDb;
  readonly feed: IndexFeed;
  readonly moves: Moves;
  readonly settings: CatalogueSettings;
  readonly #open: OpenFiles;
  readonly #trashing = new Map<string, Promise<void>>();

  constructor(work: WorkDb, index: IndexDb, service: IndexService, settings: CatalogueSettings) {
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

  pathsOf(row: SessionPlace): SessionPaths {
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
