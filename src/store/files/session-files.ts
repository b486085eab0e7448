import { join } from "node:path";
import { retryAdvice, SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import { noSuchSession } from "../rules.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readOwn, readWhole, removeTreeDurably, writeTemporary } from "./disk.ts";
import type { SessionPaths } from "./layout.ts";
import { attachmentsFolder, listCopies, sessionPaths, stateFolder, trashedPaths } from "./layout.ts";
import { FileClosed } from "./log-file.ts";
import { isGone, isKnownToLive } from "./process-identity.ts";
import { adoptedFrom } from "./rebuild.ts";
import type { Recovery } from "./recover.ts";
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
  // The folder of a purged user must not appear again.
  if (!owner.isWanted()) throw new FileClosed();
  await makeFolderDurably(disk, paths.folder);
  await lock.acquire();
  try {
    // Another process might have moved the session to the trash while this one was waiting.
    if (!owner.isWanted()) throw new FileClosed();
    if (parts !== null) refuseOtherOwner(paths, disk, owner.uid);
    const there = disk.stat(paths.log);
    if (there !== null && there.size > 0) return;
    if (await keepWorkingSet(paths, disk, owner.uid)) return;
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
async function keepWorkingSet(paths: SessionPaths, disk: Disk, uid: string): Promise<boolean> {
  const bytes = readWhole(disk, paths.working);
  if (bytes === null || bytes.length === 0) return false;
  const { header } = parseSession(bytes);
  if (header?.skein?.uid !== uid) {
    throw missingLog(paths.log, `it is missing, and ${paths.working} is from another program`);
  }
  if (leftOutOf(header) !== null) {
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

/**
 * Whether the file in place of a session's working set belongs to the session. Otherwise, another program has put it
 * there. Its log has one of these paths.
 */
function isOwnWorkingSet(disk: Disk, working: string, logs: readonly string[], uid: string): boolean {
  const identity = disk.stat(working)?.identity;
  if (identity === undefined) return false;
  if (logs.some((log) => disk.stat(log)?.identity === identity)) return true;
  const bytes = readOwn(disk, working);
  return bytes !== null && parseSession(bytes).header?.skein?.uid === uid;
}

/**
 * Moves the log first because a session without a log would be created again. An existing log is not overwritten. If
 * the session's uid is given, a file of another program is not moved.
 */
export async function moveSession(
  disk: Disk,
  from: SessionPaths,
  to: SessionPaths,
  uid?: string,
): Promise<void> {
  await makeFolderDurably(disk, to.folder);
  if (disk.stat(from.log) !== null && disk.stat(to.log) === null) disk.rename(from.log, to.log);
  const isThere = disk.stat(from.working) !== null;
  if (isThere && (uid === undefined || isOwnWorkingSet(disk, from.working, [to.log], uid)))
    disk.rename(from.working, to.working);
  await disk.syncFolder(to.folder);
  await disk.syncFolder(from.folder);
}

interface MoveSettings {
  readonly root: string;
  readonly disk: Disk;
  readonly lock: LockSettings;
  readonly report: (found: Recovery) => void;
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
      // Another process might have restored or purged it.
      if (this.#work.byUid(row.uid)?.state !== "trashed") noSuchSession(row.sessionId);
      if (this.#isForeign(row)) {
        const problem = `The file ${paths.working} is from another program`;
        throw new SkeinError("conflict", { problem, advice: "Move it elsewhere, then try again" });
      }
      if (disk.stat(away.log) !== null) await moveSession(disk, away, paths);
      try {
        // The session must not become visible if it cannot be read.
        if ((readWhole(disk, paths.log)?.length ?? 0) === 0) throw missingLog(paths.log);
        this.#work.move(row.uid, "trashed", "live");
      } catch (error) {
        await moveSession(disk, paths, away, row.uid);
        throw error;
      }
    });
  }

  /** Moves what is left of a session whose log is missing to the trash. `commit` marks the session under the lock. */
  async moveLost(row: SessionRow, commit: () => void): Promise<void> {
    const { disk, root } = this.#settings;
    const paths = sessionPaths(root, row, row.sessionId);
    await this.underLock(row, undefined, async () => {
      // The log might have been restored in the meantime.
      if ((disk.stat(paths.log)?.size ?? 0) > 0)
        throw new SkeinError("conflict", { problem: `${paths.log} exists again`, advice: retryAdvice });
      commit();
      await moveSession(disk, paths, trashedPaths(root, row.uid, row.sessionId), row.uid);
    });
  }

  /** Deletes all files of a session. */
  async removeFiles(row: SessionRow): Promise<void> {
    const { disk, root } = this.#settings;
    const paths = sessionPaths(root, row, row.sessionId);
    const working = row.state === "trashed" && this.#isForeign(row) ? [] : [paths.working];
    const left = [paths.log, ...working, ...listCopies(paths, disk)];
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
    const { disk, report, root } = this.#settings;
    for (const row of [...this.#work.inState("trashed"), ...this.#work.inState("forking")]) {
      const paths = sessionPaths(root, row, row.sessionId);
      if (row.state === "trashed" && this.#isForeign(row)) {
        const note = "its ID belongs to a session in the trash";
        report({ kind: "not_taken_in", file: paths.working, note });
      }
      if (row.state === "trashed" && !this.#isLeft(row)) continue;
      // If the lock is held, its holder is completing the move.
      await this.underLock(row, 0, async () => {
        const found = this.#work.byUid(row.uid);
        if (found?.state === "trashed" && this.#isLeft(row))
          await moveSession(disk, paths, trashedPaths(root, row.uid, row.sessionId), row.uid);
        if (found?.state === "forking" && isGivenUp(found, now)) await this.#endFork(row, paths);
      }).catch(unlessLocked);
    }
  }

  /** Whether the session's folder contains files of this session. */
  #isLeft(row: SessionRow): boolean {
    const { disk, root } = this.#settings;
    const { log, working } = sessionPaths(root, row, row.sessionId);
    return disk.stat(log) !== null || (disk.stat(working) !== null && !this.#isForeign(row));
  }

  /** Whether another program has put a file in place of the session's working set. */
  #isForeign(row: SessionRow): boolean {
    const { disk, root } = this.#settings;
    const { log, working } = sessionPaths(root, row, row.sessionId);
    const logs = [log, trashedPaths(root, row.uid, row.sessionId).log];
    return disk.stat(working) !== null && !isOwnWorkingSet(disk, working, logs, row.uid);
  }

  /** Ends forks that dead processes started. Returns `false` if there are none. */
  async finishAbandoned(now: number): Promise<boolean> {
    if (!this.#work.inState("forking").some(isAbandoned)) return false;
    await this.finish(now);
    return true;
  }

  underLock<T>(row: SessionRow, timeoutMs: number | undefined, act: () => Promise<T>): Promise<T> {
    const paths = sessionPaths(this.#settings.root, row, row.sessionId);
    return underLock(paths.lock, this.#settings.lock, act, timeoutMs);
  }

  /** Undoes an adoption that did not get as far as moving the other program's file, so that it can be repeated. */
  async #endFork(row: SessionRow, paths: SessionPaths): Promise<void> {
    const { disk } = this.#settings;
    if (isUnfinishedAdoption(row, paths, disk) && disk.unlink(paths.log)) await disk.syncFolder(paths.folder);
    if (this.#isLeft(row)) this.#work.move(row.uid, "forking", "live");
    else this.#work.release(row.uid);
  }
}

/** Whether the file that a session is being adopted from is still in its place. */
function isUnfinishedAdoption(row: SessionRow, { folder, working }: SessionPaths, disk: Disk): boolean {
  const from = adoptedFrom(row);
  if (from === null || disk.kind(`${working}.orig`) !== null) return false;
  return disk.kind(join(folder, from.file)) === "file";
}

/** An adoption holds the lock until it is finished, so it has been abandoned if the lock is free. */
function isAbandoned(row: SessionRow): boolean {
  const { maker } = row.first;
  return adoptedFrom(row) !== null || (maker !== undefined && isGone(maker));
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
