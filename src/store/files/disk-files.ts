import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, SkeinError } from "../../core/errors.ts";
import { Slices } from "../../core/slices.ts";
import type { Disk, DiskFile } from "./disk.ts";

/** Whole files, on any disk. */

/** Whether a file can be read to its end: a pipe or a device cannot. Links are followed. */
export function isRegularFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** Reading a pipe would wait for its writer, and a device may have no end. */
export function refuseSpecialFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isFile() || stat.isDirectory()) return;
  const advice = "Name a .jsonl file";
  throw new SkeinError("unreadable_file", { file: path, problem: "it is not a regular file", advice });
}

/** All bytes of a file; `null` when there is none. */
export function readWhole(disk: Disk, path: string): Uint8Array | null {
  const file = disk.openToRead(path);
  if (file === null) return null;
  try {
    return file.read(0, file.stat().size);
  } finally {
    file.close();
  }
}

/** As `readWhole`, but only what is a file itself: no folder, no link, nothing that others listen at. */
export function readOwn(disk: Disk, path: string): Uint8Array | null {
  return disk.kind(path) === "file" ? readWhole(disk, path) : null;
}

/** Writes all of it, or throws `ENOSPC` for a disk that takes only a part. */
export function appendWhole(file: DiskFile, bytes: Uint8Array): void {
  let written = 0;
  while (written < bytes.length) {
    const count = file.append(bytes.subarray(written));
    if (count === 0)
      throw Object.assign(new Error("the disk took only a part of the write"), { code: "ENOSPC" });
    written += count;
  }
}

/** So much goes to the kernel at once: more keeps everybody waiting. */
const pieceBytes = 4 * 1024 * 1024;

/** Files are put in place under a lock. */
async function appendInSlices(file: DiskFile, bytes: Uint8Array): Promise<void> {
  const slices = Slices.underLock();
  for (let at = 0; at === 0 || at < bytes.length; at += pieceBytes) {
    if (at > 0) await slices.turn();
    appendWhole(file, bytes.subarray(at, at + pieceBytes));
  }
}

/**
 * Puts a file in place, whole and durable: a temporary one, synced, renamed, the folder synced. The folder and those
 * above it are made if need be. `before` is called right before the renaming: where it throws, nothing is put in place.
 */
export async function replaceWhole(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  token: string,
  before: () => void = () => undefined,
): Promise<void> {
  await makeFolderDurably(disk, dirname(path));
  const temporary = await writeBeside(disk, path, bytes, token, true);
  try {
    before();
    disk.rename(temporary, path);
  } catch (error) {
    disk.unlink(temporary);
    throw error;
  }
  await disk.syncFolder(dirname(path));
}

/** Writes a temporary file beside the one it is to become, and gives its path. A failed write leaves nothing behind. */
export async function writeBeside(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  token: string,
  isDurable: boolean,
): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path)}.${token}.tmp`);
  disk.unlink(temporary);
  const file = disk.create(temporary);
  try {
    await appendInSlices(file, bytes);
    if (isDurable) await file.sync();
  } catch (error) {
    disk.unlink(temporary);
    throw error;
  } finally {
    file.close();
  }
  return temporary;
}

/** Makes a folder whose own name, and those of the folders above it, survive a power cut. */
export async function makeFolderDurably(disk: Disk, folder: string): Promise<void> {
  for (const made of disk.makeFolder(folder)) await disk.syncFolder(dirname(made));
}

/** A folder and all that is in it, gone after a power cut too. */
export async function removeTreeDurably(disk: Disk, folder: string): Promise<void> {
  if (!disk.isFolder(folder)) return;
  disk.removeTree(folder);
  await disk.syncFolder(dirname(folder));
}

/** Whether an error says that the file is there already. */
export function isThere(error: unknown): boolean {
  return codeOf(error) === "EEXIST";
}
