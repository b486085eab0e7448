import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, isDiskFault } from "../../core/errors.ts";
import { realDisk } from "../../store/files/disk.ts";

/**
 * Small files in the root folder that only this user can access: mode 0600, written atomically, never through a
 * symbolic link.
 */

const mostBytes = 16_384;
const ownMode = 0o600;
const writableByOthers = 0o022;

export interface PrivateFile {
  readonly text: string;
  /** `true` if another user could have written the file. */
  readonly isExposed: boolean;
  readonly modifiedAt: number;
}

/** Returns `null` if the file is missing or is not a small regular file. */
export function readPrivate(path: string): PrivateFile | null {
  const handle = openOwn(path);
  if (handle === null) return null;
  try {
    const stat = fstatSync(handle);
    if (!stat.isFile() || stat.size > mostBytes) return null;
    const bytes = Buffer.alloc(stat.size);
    const count = readSync(handle, bytes, 0, stat.size, 0);
    const isForeign = process.getuid !== undefined && stat.uid !== process.getuid() && stat.uid !== 0;
    const isExposed = isForeign || (process.platform !== "win32" && (stat.mode & writableByOthers) !== 0);
    return { text: bytes.toString("utf8", 0, count), isExposed, modifiedAt: stat.mtimeMs };
  } finally {
    closeSync(handle);
  }
}

/** Removes all permissions for other users. Returns `false` if the file is missing or belongs to another user. */
export function makePrivate(path: string): boolean {
  const handle = openOwn(path);
  if (handle === null) return false;
  try {
    const { mode } = fstatSync(handle);
    if ((mode & 0o777) !== ownMode) fchmodSync(handle, ownMode);
    return true;
  } catch (error) {
    if (codeOf(error) === "EPERM") return false;
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** Creates a file and its contents atomically. If the file already exists, leaves it unchanged and returns `false`. */
export function createPrivate(path: string, text: string, nonce: string): boolean {
  const temporary = writeTemporary(path, text, nonce);
  try {
    // On a file system without hard links, the file is empty for a moment and might be incomplete after a power loss.
    if (!realDisk.link(temporary, path)) writeNew(path, text);
    syncFolder(dirname(path));
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    realDisk.unlink(temporary);
  }
}

/** Replaces a file. If the disk is full, overwrites the file in place, so a power loss might leave it incomplete. */
export function replacePrivate(path: string, text: string, nonce: string): void {
  try {
    realDisk.rename(writeTemporary(path, text, nonce), path);
  } catch (error) {
    if (!isDiskFault(error) || readPrivate(path)?.isExposed !== false) throw error;
    overwrite(path, text);
  }
  syncFolder(dirname(path));
}

/** Needs no new disk blocks as long as the length stays about the same. */
function overwrite(path: string, text: string): void {
  const handle = openSync(path, constants.O_RDWR | (constants.O_NOFOLLOW ?? 0));
  try {
    const bytes = Buffer.from(text);
    writeSync(handle, bytes, 0, bytes.length, 0);
    ftruncateSync(handle, bytes.length);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function writeTemporary(path: string, text: string, nonce: string): string {
  const temporary = join(dirname(path), `.${basename(path)}.${nonce}.tmp`);
  realDisk.unlink(temporary);
  try {
    writeNew(temporary, text);
  } catch (error) {
    realDisk.unlink(temporary);
    throw error;
  }
  return temporary;
}

function writeNew(path: string, text: string): void {
  const { O_WRONLY, O_CREAT, O_EXCL } = constants;
  const handle = openSync(path, O_WRONLY | O_CREAT | O_EXCL, ownMode);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function openOwn(path: string): number | null {
  try {
    // Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
    return openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EMLINK", "ENXIO"].includes(codeOf(error))) return null;
    throw error;
  }
}

function syncFolder(folder: string): void {
  if (process.platform === "win32") return; // Folders cannot be synced on this platform.
  const handle = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
