import { SkeinError } from "../../core/errors.ts";
import { makeFolderDurably, removeTreeDurably } from "./disk-files.ts";
import { copiesBeside } from "./folders.ts";
import { attachmentsFolder, sessionPaths, stateFolder, trashedPaths } from "./layout.ts";
import { isGone, isKnownToLive } from "./process-identity.ts";
import type { SessionFileSettings } from "./session-file.ts";
import { moveSession } from "./session-files.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";
import { WriteLock } from "./write-lock.ts";

export interface MoveSettings extends SessionFileSettings {
  readonly root: string;
  readonly lock: LockSettings;
}

/** A fork that takes longer was given up by a process that died, where nobody can say whether it lives. */
const forkingMs = 60_000;

/** Sessions on their way into the trash, out of it, and out of the world: each step can be done again after a crash. */
export class Moves {
  readonly #work: WorkDb;
  readonly #settings: MoveSettings;

  constructor(work: WorkDb, settings: MoveSettings) {
    this.#work = work;
    this.#settings = settings;
  }

  /** Moved first, marked then: nobody sees it before it is all there. */
  async untrash(row: SessionRow): Promise<void> {
    const { disk, root } = this.#settings;
    const paths = sessionPaths(root, row, row.sessionId);
    const away = trashedPaths(root, row.uid, row.sessionId);
    await this.underLock(row, undefined, async () => {
      if (disk.stat(away.log) !== null) await moveSession(disk, away, paths);
      try {
        this.#work.move(row.uid, "trashed", "live");
      } catch (error) {
        await moveSession(disk, paths, away);
        throw error;
      }
    });
  }

  /** All files of a session that is in the trash, or was to go there. */
  async removeFiles(row: SessionRow): Promise<void> {
    const { disk, root } = this.#settings;
    const paths = sessionPaths(root, row, row.sessionId);
    const left = [paths.log, paths.working, ...copiesBeside(paths, disk)];
    if (left.map((path) => disk.unlink(path)).includes(true)) await disk.syncFolder(paths.folder);
    for (const path of [
      trashedPaths(root, row.uid, row.sessionId).folder,
      stateFolder(root, row, row.sessionId),
      attachmentsFolder(root, row, row.sessionId),
    ]) {
      await removeTreeDurably(disk, path);
    }
  }

  /** What a crash left half-done: sessions on their way into the trash or out of it, and forks that nobody was told of. */
  async finish(now: number): Promise<void> {
    const { disk, root } = this.#settings;
    for (const row of [...this.#work.inState("trashed"), ...this.#work.inState("forking")]) {
      const paths = sessionPaths(root, row, row.sessionId);
      const isLeft = () => [paths.log, paths.working].some((path) => disk.stat(path) !== null);
      if (row.state === "trashed" && !isLeft()) continue;
      // Whoever has the lock is at it.
      await this.underLock(row, 0, async () => {
        const found = this.#work.byUid(row.uid);
        if (found?.state === "trashed" && isLeft())
          await moveSession(disk, paths, trashedPaths(root, row.uid, row.sessionId));
        if (found?.state === "forking" && isGivenUp(found, now)) this.#endFork(row, isLeft());
      }).catch(unlessLocked);
    }
  }

  /** Ends the forks of processes that are known to be dead. `false`: there are none. */
  async finishAbandoned(now: number): Promise<boolean> {
    if (!this.#work.inState("forking").some(isAbandoned)) return false;
    await this.finish(now);
    return true;
  }

  async underLock(row: SessionRow, timeoutMs: number | undefined, act: () => Promise<void>): Promise<void> {
    const paths = sessionPaths(this.#settings.root, row, row.sessionId);
    await makeFolderDurably(this.#settings.disk, paths.folder);
    const lock = new WriteLock(paths.lock, this.#settings.lock);
    await lock.acquire(timeoutMs);
    try {
      await act();
    } finally {
      lock.releaseSoon();
    }
  }

  #endFork(row: SessionRow, isWritten: boolean): void {
    if (isWritten) this.#work.move(row.uid, "forking", "live");
    else this.#work.release(row.uid);
  }
}

function isAbandoned({ first: { maker } }: SessionRow): boolean {
  return maker !== undefined && isGone(maker);
}

/** Whether somebody is known to be at a fork, however long it takes. */
export function isUnderWay({ first: { maker } }: SessionRow): boolean {
  return maker !== undefined && isKnownToLive(maker);
}

function isGivenUp(row: SessionRow, now: number): boolean {
  const { claimedAt = row.createdAt } = row.first;
  return isAbandoned(row) || (!isUnderWay(row) && now - claimedAt > forkingMs);
}

function unlessLocked(error: unknown): void {
  if (!(error instanceof SkeinError) || error.code !== "locked") throw error;
}
