import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readWhole, removeTreeDurably, writeBeside } from "./disk.ts";
import type { SessionPaths } from "./layout.ts";
import { attachmentsFolder, copiesBeside, sessionPaths, stateFolder, trashedPaths } from "./layout.ts";
import { FileClosed } from "./log-file.ts";
import { isGone, isKnownToLive } from "./process-identity.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { leftOutOf } from "./working-set.ts";
import type { LockSettings } from "./write-lock.ts";
import { WriteLock } from "./write-lock.ts";

/** The two files of a session as a whole: how they come to be, and how they move. */

/** Whose files they are. */
export interface FileOwner {
  readonly uid: string;
  /** Asked under the lock: whether the session is there, or about to be. */
  isWanted(): boolean;
}

interface MakeSettings {
  readonly disk: Disk;
  readonly durability: "full" | "os";
  newId(): string;
}

/**
 * Makes log and working set of a new session. What lies under its name and is another's is left alone. `bytes` null: it
 * was written before, and its log must be there.
 */
export async function beginFiles(
  paths: SessionPaths,
  lock: WriteLock,
  bytes: Uint8Array | null,
  owner: FileOwner,
  settings: MakeSettings,
): Promise<void> {
  const { disk } = settings;
  await makeFolderDurably(disk, paths.folder);
  await lock.acquire();
  try {
    // Somebody else may have put it into the trash while we waited.
    if (!owner.isWanted()) throw new FileClosed();
    if (bytes !== null) refuseAnothers(paths, disk, owner.uid);
    const there = disk.stat(paths.log);
    if (there !== null && there.size > 0) return;
    if (await keepWorkingSet(paths, disk)) return;
    if (bytes === null) throw goneLog(paths.log);
    await writeFirst(paths, bytes, settings);
  } finally {
    lock.releaseSoon();
  }
}

/** A failed beginning leaves nothing behind that another one would take for its own. */
async function writeFirst(
  paths: SessionPaths,
  bytes: Uint8Array,
  { disk, durability, newId }: MakeSettings,
): Promise<void> {
  const isDurable = durability === "full";
  const temporary = await writeBeside(disk, paths.log, bytes, newId(), isDurable);
  try {
    disk.rename(temporary, paths.log);
    disk.unlink(paths.working);
    disk.link(paths.log, paths.working);
    if (isDurable) await disk.syncFolder(paths.folder);
  } catch (error) {
    for (const path of [temporary, paths.working, paths.log]) disk.unlink(path);
    throw error;
  }
}

/** `conflict` where a file under a session's name is not its own. */
export function refuseAnothers(paths: SessionPaths, disk: Disk, uid: string): void {
  for (const path of [paths.log, paths.working]) {
    const bytes = readWhole(disk, path);
    if (bytes === null || bytes.length === 0 || parseSession(bytes).header?.skein?.uid === uid) continue;
    throw new SkeinError("conflict", {
      problem: `The file ${path} is another session's`,
      advice: "Choose another session id, or open that session by its id, which takes the file in",
    });
  }
}

/** Where the log is gone and its second name is not, that is the log. A cut working set is not all there was. */
async function keepWorkingSet(paths: SessionPaths, disk: Disk): Promise<boolean> {
  const bytes = readWhole(disk, paths.working);
  if (bytes === null || bytes.length === 0) return false;
  if (leftOutOf(parseSession(bytes).header) !== null) {
    throw goneLog(paths.log, "it is gone, and the working set has only a part of it");
  }
  disk.unlink(paths.log);
  disk.link(paths.working, paths.log);
  await disk.syncFolder(paths.folder);
  return true;
}

/** The log of a session that was written before is not there. */
export function goneLog(file: string, problem = "it is gone"): SkeinError {
  return new SkeinError("unreadable_file", { file, problem, advice: "Restore it from a backup" });
}

/** Log first: a session without its log would be made anew. A log that is there already is not overwritten. */
export async function moveSession(disk: Disk, from: SessionPaths, to: SessionPaths): Promise<void> {
  await makeFolderDurably(disk, to.folder);
  if (disk.stat(from.log) !== null && disk.stat(to.log) === null) disk.rename(from.log, to.log);
  if (disk.stat(from.working) !== null) disk.rename(from.working, to.working);
  await disk.syncFolder(to.folder);
  await disk.syncFolder(from.folder);
}

interface MoveSettings {
  readonly root: string;
  readonly disk: Disk;
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
