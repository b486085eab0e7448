import { SkeinError } from "../../core/errors.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readWhole, writeBeside } from "./disk-files.ts";
import type { SessionPaths } from "./layout.ts";
import { FileClosed } from "./log-file.ts";
import { leftOutOf } from "./working-set.ts";
import type { WriteLock } from "./write-lock.ts";

/** The two files of a session as a whole: how they come to be, and how they move. */

/** Whose files they are. */
export interface FileOwner {
  readonly uid: string;
  /** Asked under the lock: whether the session is there, or about to be. */
  isWanted(): boolean;
}

export interface MakeSettings {
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
