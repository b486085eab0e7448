import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readWhole, removeTreeDurably, writeTemporary } from "./disk.ts";
import type { SessionPaths } from "./layout.ts";
import { attachmentsFolder, listCopies, sessionPaths, stateFolder, trashedPaths } from "./layout.ts";
import { FileClosed } from "./log-file.ts";
import { isGone, isKnownToLive } from "./process-identity.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import { leftOutOf } from "./working-set.ts";
import type { LockSettings, WriteLock } from "./write-lock.ts";
import { underLock } from "./write-lock.ts";

/** The session that owns the files. */
export interface FileOwner {
  readonly uid: string;
  /** Whether the session still exists. Called under the lock. */
  isWanted(): boolean;
}

/** The input for creating a session's files. */
export interface NewSessionFiles {
  readonly paths: SessionPaths;
  readonly lock: WriteLock;
  readonly owner: FileOwner;
  readonly settings: { readonly disk: Disk; readonly durability: "full" | "os"; newId(): string };
}

/**
 * Creates a session's log, which consists of the given parts, and its working set. Does not touch files that belong to
 * another session. If `parts` is `null`, the log has already been written and must exist.
 */
export async function beginFiles(
  { paths, lock, owner, settings }: NewSessionFiles,
  parts: Iterable<Uint8Array> | null,
): Promise<void> {
  const { disk } = settings;
  await makeFolderDurably(disk, paths.folder);
  await lock.acquire();
  try {
    // Another process might have moved the session to the trash while this one was waiting.
    if (!owner.isWanted()) throw new FileClosed();
    if (parts !== null) refuseOtherOwner(paths, disk, owner.uid);
    const there = disk.stat(paths.log);
    if (there !== null && there.size > 0) return;
    if (await keepWorkingSet(paths, disk)) return;
    if (parts === null) throw missingLog(paths.log);
    await writeFirst(paths, parts, settings);
  } finally {
    lock.releaseSoon();
  }
}

/** A failed attempt must not leave files behind that another attempt would mistake for its own. */
async function writeFirst(
  paths: SessionPaths,
  parts: Iterable<Uint8Array>,
  { disk, durability, newId }: NewSessionFiles["settings"],
): Promise<void> {
  const isDurable = durability === "full";
  const temporary = await writeTemporary(disk, paths.log, parts, newId(), isDurable);
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

/** Throws `conflict` if a file under the session's name belongs to another session. */
export function refuseOtherOwner(paths: SessionPaths, disk: Disk, uid: string): void {
  for (const path of [paths.log, paths.working]) {
    const bytes = readWhole(disk, path);
    if (bytes === null || bytes.length === 0 || parseSession(bytes).header?.skein?.uid === uid) continue;
    throw new SkeinError("conflict", {
      problem: `The file ${path} belongs to another session`,
      advice: "Choose a different session ID, or open that session by its ID to adopt the file",
    });
  }
}

/** If the log is missing but its hard link exists, restores the log from it. A truncated working set is not enough. */
async function keepWorkingSet(paths: SessionPaths, disk: Disk): Promise<boolean> {
  const bytes = readWhole(disk, paths.working);
  if (bytes === null || bytes.length === 0) return false;
  if (leftOutOf(parseSession(bytes).header) !== null) {
    throw missingLog(paths.log, "it is missing, and the working set contains only part of it");
  }
  disk.unlink(paths.log);
  disk.link(paths.working, paths.log);
  await disk.syncFolder(paths.folder);
  return true;
}

/** Builds the error for an existing session whose log is missing. */
export function missingLog(file: string, problem = "it is missing"): SkeinError {
  return new SkeinError("unreadable_file", { file, problem, advice: "Restore it from a backup" });
}

/** Moves the log first because a session without a log would be created again. An existing log is not overwritten. */
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

/** A fork that takes longer is considered abandoned if it is unknown whether its process is still alive. */
const forkingMs = 60_000;

/** Moves sessions into and out of the trash and deletes them. Every step can be repeated after a crash. */
export class SessionMover {
  readonly #work: WorkDb;
  readonly #settings: MoveSettings;

  constructor(work: WorkDb, settings: MoveSettings) {
    this.#work = work;
    this.#settings = settings;
  }

  /** Moves the files before changing the state so that the session becomes visible only when it is complete. */
  async moveOutOfTrash(row: SessionRow): Promise<void> {
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

  /** Deletes all files of a session in the trash. */
  async removeFiles(row: SessionRow): Promise<void> {
    const { disk, root } = this.#settings;
    const paths = sessionPaths(root, row, row.sessionId);
    const left = [paths.log, paths.working, ...listCopies(paths, disk)];
    if (left.map((path) => disk.unlink(path)).includes(true)) await disk.syncFolder(paths.folder);
    for (const path of [
      trashedPaths(root, row.uid, row.sessionId).folder,
      stateFolder(root, row, row.sessionId),
      attachmentsFolder(root, row, row.sessionId),
    ]) {
      await removeTreeDurably(disk, path);
    }
  }

  /** Completes moves into and out of the trash that a crash interrupted, and ends unfinished forks. */
  async finish(now: number): Promise<void> {
    const { disk, root } = this.#settings;
    for (const row of [...this.#work.inState("trashed"), ...this.#work.inState("forking")]) {
      const paths = sessionPaths(root, row, row.sessionId);
      const isLeft = () => [paths.log, paths.working].some((path) => disk.stat(path) !== null);
      if (row.state === "trashed" && !isLeft()) continue;
      // If the lock is held, its holder is completing the move.
      await this.underLock(row, 0, async () => {
        const found = this.#work.byUid(row.uid);
        if (found?.state === "trashed" && isLeft())
          await moveSession(disk, paths, trashedPaths(root, row.uid, row.sessionId));
        if (found?.state === "forking" && isGivenUp(found, now)) this.#endFork(row, isLeft());
      }).catch(unlessLocked);
    }
  }

  /** Ends forks that dead processes started. Returns `false` if there are none. */
  async finishAbandoned(now: number): Promise<boolean> {
    if (!this.#work.inState("forking").some(isAbandoned)) return false;
    await this.finish(now);
    return true;
  }

  async underLock(row: SessionRow, timeoutMs: number | undefined, act: () => Promise<void>): Promise<void> {
    const paths = sessionPaths(this.#settings.root, row, row.sessionId);
    await underLock(paths.lock, this.#settings.lock, act, timeoutMs);
  }

  #endFork(row: SessionRow, isWritten: boolean): void {
    if (isWritten) this.#work.move(row.uid, "forking", "live");
    else this.#work.release(row.uid);
  }
}

function isAbandoned({ first: { maker } }: SessionRow): boolean {
  return maker !== undefined && isGone(maker);
}

/** Whether the process that is writing a fork is known to be alive. */
export function isMakerAlive({ first: { maker } }: SessionRow): boolean {
  return maker !== undefined && isKnownToLive(maker);
}

function isGivenUp(row: SessionRow, now: number): boolean {
  const { claimedAt = row.createdAt } = row.first;
  return isAbandoned(row) || (!isMakerAlive(row) && now - claimedAt > forkingMs);
}

function unlessLocked(error: unknown): void {
  if (!(error instanceof SkeinError) || error.code !== "locked") throw error;
}
