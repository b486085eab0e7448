import { SkeinError } from "../../core/errors.ts";
import type { IdSource } from "../../core/ids.ts";
import type { SessionTree } from "../../core/tree.ts";
import { makeFolderDurably, replaceWhole } from "./disk-files.ts";
import type { IndexDb } from "./index-db.ts";
import { indexSession } from "./indexing.ts";
import type { SessionPaths } from "./layout.ts";
import { sessionPaths, trashedPaths, userFile } from "./layout.ts";
import type { Recovery } from "./recover.ts";
import type { EntryLookup, SessionFileSettings } from "./session-file.ts";
import { moveSession, SessionFile } from "./session-file.ts";
import { headerOf } from "./session-record.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { isThere } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";
import { WriteLock } from "./write-lock.ts";

export interface CatalogueSettings extends SessionFileSettings {
  readonly root: string;
  readonly lock: LockSettings;
  /** How many sessions are kept open. */
  readonly mostOpen: number;
  readonly report: (found: Recovery) => void;
}

/** Longest that a list waits for sessions that the index is behind for. */
const catchUpMs = 200;
const idleMs = 5000;
/** A fork that takes longer was given up by a process that died. */
const forkingMs = 60_000;
/** How often the index is brought to the disk. */
const checkpointMs = 10_000;

/** The open sessions, and the index that follows them. */
export class SessionCatalogue {
  readonly work: WorkDb;
  readonly index: IndexDb;
  readonly #settings: CatalogueSettings;
  /** In the order of use, the oldest first. */
  readonly #open = new Map<string, { opening: Promise<SessionFile>; used: number }>();
  readonly #trashing = new Map<string, Promise<void>>();
  readonly #reported = new Set<string>();
  /** Marked in `work.db` as possibly behind in the index. */
  readonly #marked = new Set<string>();
  #markedAt = 0;
  #checkpointed = performance.now();

  constructor(work: WorkDb, index: IndexDb, settings: CatalogueSettings) {
    this.work = work;
    this.index = index;
    this.#settings = settings;
  }

  get newId(): IdSource {
    return this.#settings.newId;
  }

  now(): number {
    return this.#settings.clock.now();
  }

  pathOf(row: SessionRow): string {
    return sessionPaths(this.#settings.root, row, row.sessionId).working;
  }

  /** A user whose folder is named by a hash is written down beside it, before anything else is there. */
  async knowUser(userId: string | null): Promise<void> {
    const { disk, root, newId } = this.#settings;
    const path = userFile(root, userId);
    if (path === null || disk.stat(path) !== null) return;
    await replaceWhole(disk, path, Buffer.from(`${JSON.stringify({ userId })}\n`), newId());
  }

  open(row: SessionRow): Promise<SessionFile> {
    const known = this.#open.get(row.uid);
    if (known !== undefined) {
      this.#open.delete(row.uid);
      this.#open.set(row.uid, { ...known, used: performance.now() });
      return known.opening;
    }
    const paths = sessionPaths(this.#settings.root, row, row.sessionId);
    const lock = new WriteLock(paths.lock, this.#settings.lock);
    return this.#keep(row.uid, this.#openFiles(row, paths, lock));
  }

  /** A session that begins with entries; its header says what its row says. */
  create(row: SessionRow, tree: SessionTree): Promise<SessionFile> {
    const paths = sessionPaths(this.#settings.root, row, row.sessionId);
    Object.assign(tree.header, headerOf(row));
    const lock = new WriteLock(paths.lock, this.#settings.lock);
    return this.#keep(row.uid, SessionFile.create(paths, lock, tree, this.#lookup(row.uid), this.#settings));
  }

  /**
   * Marked first, moved then, both under the lock: a crash in between is finished at the next start. `false`: somebody
   * else here is at it.
   */
  async trash(row: SessionRow): Promise<boolean> {
    const known = this.#trashing.get(row.uid);
    if (known !== undefined) {
      await known;
      return false;
    }
    const trashing = this.#moveToTrash(row).finally(() => this.#trashing.delete(row.uid));
    this.#trashing.set(row.uid, trashing);
    await trashing;
    return true;
  }

  async #moveToTrash(row: SessionRow): Promise<void> {
    const file = await this.open(row);
    this.#open.delete(row.uid);
    const target = trashedPaths(this.#settings.root, row.uid, row.sessionId);
    await file.moveTo(target, () => this.work.move(row.uid, "live", "trashed"));
    this.index.remove(row.uid);
  }

  /** Moved first, marked then: nobody sees it before it is all there. */
  async untrash(row: SessionRow): Promise<SessionFile> {
    const { disk, root } = this.#settings;
    const paths = sessionPaths(root, row, row.sessionId);
    const away = trashedPaths(root, row.uid, row.sessionId);
    await this.#underLock(row, undefined, async () => {
      if (disk.stat(away.log) !== null) await moveSession(disk, away, paths);
      try {
        this.work.move(row.uid, "trashed", "live");
      } catch (error) {
        await moveSession(disk, paths, away);
        throw error;
      }
    });
    return this.open({ ...row, state: "live" });
  }

  /** What a crash left half-done: sessions on their way into the trash or out of it, and forks that nobody was told of. */
  async finishMoves(): Promise<void> {
    const { disk, root } = this.#settings;
    for (const row of [...this.work.inState("trashed"), ...this.work.inState("forking")]) {
      const paths = sessionPaths(root, row, row.sessionId);
      const isLeft = disk.stat(paths.log) !== null;
      if (row.state === "trashed" && !isLeft) continue;
      // Whoever has the lock is at it.
      await this.#underLock(row, 0, async () => {
        const now = this.work.byUid(row.uid);
        if (now?.state === "trashed" && isLeft)
          await moveSession(disk, paths, trashedPaths(root, row.uid, row.sessionId));
        if (now?.state === "forking" && this.now() - now.createdAt > forkingMs) this.#endFork(now, isLeft);
      }).catch((error: unknown) => {
        if (!(error instanceof SkeinError) || error.code !== "locked") throw error;
      });
    }
  }

  #endFork(row: SessionRow, isWritten: boolean): void {
    if (isWritten) this.work.move(row.uid, "forking", "live");
    else this.work.release(row.uid);
  }

  async #underLock(row: SessionRow, timeoutMs: number | undefined, act: () => Promise<void>): Promise<void> {
    const paths = sessionPaths(this.#settings.root, row, row.sessionId);
    await makeFolderDurably(this.#settings.disk, paths.folder);
    const lock = new WriteLock(paths.lock, this.#settings.lock);
    await lock.acquire(timeoutMs);
    try {
      await act();
    } finally {
      lock.release();
    }
  }

  async #openFiles(row: SessionRow, paths: SessionPaths, lock: WriteLock): Promise<SessionFile> {
    const first = row.state === "pending" ? headerOf(row) : null;
    const file = await SessionFile.open(paths, lock, first, this.#lookup(row.uid), this.#settings);
    if (row.state === "pending") this.work.move(row.uid, "pending", "live");
    return file;
  }

  markDirty(uid: string): void {
    // Another process may have brought the index up and taken our marks away.
    const version = this.work.changesByOthers();
    if (version !== this.#markedAt) this.#marked.clear();
    this.#markedAt = version;
    if (this.#marked.has(uid)) return;
    this.work.markDirty(uid);
    this.#marked.add(uid);
  }

  /** Brings the index up for a while; how many sessions it is then still behind for. */
  async catchUp(): Promise<number> {
    const until = performance.now() + catchUpMs;
    const marked = this.work.dirty();
    const done: string[] = [];
    for (const uid of marked) {
      if (performance.now() > until) break;
      // One session that cannot be read must not keep everybody else's from being listed.
      const problem = await this.#indexOne(uid).then(
        () => null,
        (error: unknown) => String(error),
      );
      if (problem === null) done.push(uid);
      else this.#reportOnce(uid, problem);
    }
    if (performance.now() - this.#checkpointed > checkpointMs) this.#settleMarks(done);
    return marked.length - done.length;
  }

  #reportOnce(uid: string, problem: string): void {
    if (this.#reported.has(uid)) return;
    this.#reported.add(uid);
    this.#settings.report({
      kind: "not_indexed",
      file: uid,
      note: `the session cannot be listed or searched: ${problem}`,
    });
  }

  /** A session with its index up to date. */
  async openIndexed(row: SessionRow): Promise<SessionFile> {
    const file = await this.open(row);
    if (!this.#isIndexed(row)) {
      this.markDirty(row.uid);
      indexSession(this.index, row, file);
    }
    return file;
  }

  /** Takes away marks once the index is on the disk, but not of sessions that went on meanwhile. */
  #settleMarks(uids: readonly string[]): void {
    this.#checkpointed = performance.now();
    if (!this.index.checkpoint()) return;
    const settled = uids.filter((uid) => {
      const row = this.work.byUid(uid);
      if (row === null || !isThere(row)) return this.index.known(uid) === null;
      return this.#isIndexed(row);
    });
    this.work.clearDirty(settled);
    for (const uid of settled) this.#marked.delete(uid);
  }

  #isIndexed(row: SessionRow): boolean {
    const { disk, root } = this.#settings;
    const known = this.index.known(row.uid);
    const log = disk.stat(sessionPaths(root, row, row.sessionId).log);
    return known !== null && log !== null && known.logBytes === log.size;
  }

  async close(): Promise<void> {
    const files = await Promise.allSettled([...this.#open.values()].map(({ opening }) => opening));
    for (const file of files) if (file.status === "fulfilled") await file.value.close();
    this.#open.clear();
    this.#settleMarks(this.work.dirty());
    this.work.close();
    this.index.close();
  }

  async #indexOne(uid: string): Promise<void> {
    const row = this.work.byUid(uid);
    if (row === null || !isThere(row)) return this.index.remove(uid);
    if (this.#isIndexed(row)) return;
    const file = await this.open(row);
    indexSession(this.index, row, file);
  }

  #lookup(uid: string): EntryLookup {
    return {
      has: (entryId, amongFirst) => {
        const known = this.index.known(uid);
        if (known === null || known.entries < amongFirst) return null;
        const place = this.index.place(uid, entryId);
        return place !== null && place.position < amongFirst;
      },
    };
  }

  #keep(uid: string, opening: Promise<SessionFile>): Promise<SessionFile> {
    this.#open.set(uid, { opening, used: performance.now() });
    opening.catch(() => this.#open.delete(uid));
    if (this.#open.size > this.#settings.mostOpen) void this.#closeOldest();
    return opening;
  }

  /** Only what nobody has asked for lately: whoever did may still be about to write. */
  async #closeOldest(): Promise<void> {
    const [uid, oldest] = this.#open.entries().next().value ?? [];
    if (uid === undefined || oldest === undefined || performance.now() - oldest.used < idleMs) return;
    this.#open.delete(uid);
    const file = await oldest.opening.catch(() => null);
    await file?.close();
  }
}
