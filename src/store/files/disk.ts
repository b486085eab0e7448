import type { BigIntStats } from "node:fs";
import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, isOutOfDescriptors, SkeinError } from "../../core/errors.ts";
import { Slices } from "../../core/slices.ts";

/**
 * The disk operations that the store needs. Tests replace them with a disk that fails or loses unsynced data. Writes to
 * the kernel are synchronous because they take only microseconds and expose no partial results. Syncs are asynchronous.
 * Errors are Node's own, except that opening a folder, pipe or device throws `unreadable_file`.
 */
export interface Disk {
  /** Opens a file for reading and appending. Creates it with mode 0600 if needed. */
  open(path: string): DiskFile;
  /** Like `open`, but fails if the file exists. */
  create(path: string): DiskFile;
  /** Returns `null` if there is no such file. */
  openExisting(path: string): DiskFile | null;
  /** Like `openExisting`, but read-only. */
  openToRead(path: string): DiskFile | null;
  stat(path: string): DiskStat | null;
  isFolder(path: string): boolean;
  /** Does not follow links, so a link is `other`. Returns `null` if nothing exists at the path. */
  kind(path: string): "file" | "folder" | "other" | null;
  /** Deletes a folder recursively. */
  removeTree(path: string): void;
  /** Returns an empty list if the folder does not exist. */
  list(folder: string): string[];
  /** Creates a folder and its parents with mode 0700, and returns the folders that it created. */
  makeFolder(folder: string): string[];
  rename(from: string, to: string): void;
  /** Creates a hard link. Returns `false` if hard links are not supported. */
  link(from: string, to: string): boolean;
  /** Returns `false` if the file did not exist. */
  unlink(path: string): boolean;
  touch(path: string, time: number): void;
  /** Syncs the folder so that the creation, renaming and removal of files survive a crash. */
  syncFolder(folder: string): Promise<void>;
}

export interface DiskStat {
  readonly size: number;
  /** Equal for two paths to the same file. */
  readonly identity: string;
  readonly modifiedAt: number;
  /** Changes whenever the file changes. Programs cannot set it. */
  readonly changedAt: bigint;
}

export interface DiskFile {
  stat(): DiskStat;
  size(): number;
  /** Returns fewer bytes than requested only at the end of the file. */
  read(position: number, length: number): Uint8Array;
  /** Fills an existing buffer, which is faster for large reads. Returns the part of the buffer that was filled. */
  readInto(buffer: Uint8Array, position: number): Uint8Array;
  /** Might write only part of the bytes. */
  append(bytes: Uint8Array): number;
  truncate(size: number): void;
  /** Makes the file's contents durable. */
  sync(): Promise<void>;
  close(): void;
}

const fileMode = 0o600;
/** Like `a+`, but does not create a missing file. */
const toAppend = constants.O_RDWR | constants.O_APPEND;
const toRead = constants.O_RDONLY;
const folderMode = 0o700;

export const realDisk: Disk = {
  open: (path) => openRegular(path, toAppend | constants.O_CREAT),
  create: (path) => new RealFile(openSync(path, "ax+", fileMode)),
  openExisting: (path) => absentAsNull(() => openRegular(path, toAppend)),
  openToRead: (path) => absentAsNull(() => openRegular(path, toRead)),
  stat: (path) => {
    const stat = absentAsNull(() => statSync(path, { bigint: true, throwIfNoEntry: false })) ?? null;
    return stat === null ? null : statOf(stat);
  },
  isFolder: (path) => absentAsNull(() => statSync(path).isDirectory()) === true,
  kind: (path) =>
    absentAsNull(() => {
      const stat = lstatSync(path);
      return stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other";
    }),
  removeTree: (path) => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 }),
  list: (folder) => absentAsNull(() => readdirSync(folder)) ?? [],
  makeFolder: (folder) => {
    const first = mkdirSync(folder, { recursive: true, mode: folderMode });
    if (first === undefined) return [];
    const made = [folder];
    while (made[0] !== undefined && made[0] !== first) made.unshift(dirname(made[0]));
    return made;
  },
  rename: renameSync,
  link: (from, to) => {
    try {
      linkSync(from, to);
      return true;
    } catch (error) {
      if (["EPERM", "ENOTSUP", "EOPNOTSUPP", "EXDEV", "EMLINK", "ENOSYS"].includes(codeOf(error)))
        return false;
      throw error;
    }
  },
  unlink: (path) => absentAsNull(() => unlinkSync(path)) !== null,
  touch: (path, time) => utimesSync(path, time / 1000, time / 1000),
  syncFolder: (folder) =>
    new Promise((resolve, reject) => {
      const handle = openSync(folder, "r");
      fsync(handle, (error) => {
        closeSync(handle);
        if (error === null) resolve();
        else reject(error);
      });
    }),
};

/** Wraps a disk so that it closes idle files and retries once when the process runs out of file descriptors. */
export function reclaimingDisk(disk: Disk, closeIdle: () => number): Disk {
  const again = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      if (!isOutOfDescriptors(error) || closeIdle() === 0) throw error;
      return act();
    }
  };
  return {
    stat: (path) => disk.stat(path),
    isFolder: (path) => disk.isFolder(path),
    kind: (path) => disk.kind(path),
    makeFolder: (folder) => disk.makeFolder(folder),
    rename: (from, to) => disk.rename(from, to),
    link: (from, to) => disk.link(from, to),
    unlink: (path) => disk.unlink(path),
    touch: (path, time) => disk.touch(path, time),
    open: (path) => again(() => disk.open(path)),
    create: (path) => again(() => disk.create(path)),
    openExisting: (path) => again(() => disk.openExisting(path)),
    openToRead: (path) => again(() => disk.openToRead(path)),
    list: (folder) => again(() => disk.list(folder)),
    removeTree: (path) => again(() => disk.removeTree(path)),
    syncFolder: async (folder) => {
      try {
        await disk.syncFolder(folder);
      } catch (error) {
        if (!isOutOfDescriptors(error) || closeIdle() === 0) throw error;
        await disk.syncFolder(folder);
      }
    },
  };
}

const usualOpenFiles = 1024;
let openFiles: number | undefined;

/**
 * Returns the number of file descriptors that this process can open. Node has already raised the soft limit to the hard
 * limit.
 */
export function openFileLimit(): number {
  openFiles ??= readOpenFileLimit();
  return openFiles;
}

function readOpenFileLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === undefined ? usualOpenFiles : Number(soft);
  } catch {
    return usualOpenFiles; // This system has no `/proc`.
  }
}

class RealFile implements DiskFile {
  #open: number | null;

  constructor(handle: number) {
    this.#open = handle;
  }

  /** Throws once closed because the descriptor might already belong to another file. */
  get #handle(): number {
    if (this.#open === null) throw Object.assign(new Error("EBADF: the file is closed"), { code: "EBADF" });
    return this.#open;
  }

  stat(): DiskStat {
    return statOf(fstatSync(this.#handle, { bigint: true }));
  }

  size(): number {
    return fstatSync(this.#handle).size;
  }

  read(position: number, length: number): Uint8Array {
    return this.readInto(Buffer.allocUnsafe(length), position);
  }

  readInto(buffer: Uint8Array, position: number): Uint8Array {
    let filled = 0;
    while (filled < buffer.length) {
      const count = readSync(this.#handle, buffer, filled, buffer.length - filled, position + filled);
      if (count === 0) break;
      filled += count;
    }
    return buffer.subarray(0, filled);
  }

  append(bytes: Uint8Array): number {
    return writeSync(this.#handle, bytes);
  }

  truncate(size: number): void {
    ftruncateSync(this.#handle, size);
  }

  async sync(): Promise<void> {
    const handle = this.#handle;
    await new Promise<void>((resolve, reject) => {
      fdatasync(handle, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  close(): void {
    if (this.#open !== null) closeSync(this.#open);
    this.#open = null;
  }
}

/** Opens with `O_NONBLOCK` because otherwise opening a pipe would wait for a writer. */
function openRegular(path: string, flags: number): RealFile {
  const handle = openOrRefuse(path, flags | constants.O_NONBLOCK);
  const stat = fstatSync(handle);
  if (stat.isFile()) return new RealFile(handle);
  closeSync(handle);
  throw notRegular(path, stat.isDirectory());
}

function openOrRefuse(path: string, flags: number): number {
  try {
    return openSync(path, flags, fileMode);
  } catch (error) {
    const code = codeOf(error);
    // ENXIO: a socket, or a device without hardware.
    throw code === "EISDIR" || code === "ENXIO" ? notRegular(path, code === "EISDIR") : error;
  }
}

function notRegular(file: string, isFolder: boolean): SkeinError {
  const problem = isFolder ? "it is a folder, not a file" : "it is not a regular file";
  const advice = "Move it elsewhere, then restore the file from a backup";
  return new SkeinError("unreadable_file", { file, problem, advice });
}

/**
 * Gives an error from the disk a code of the catalog. If file descriptors have run out, the error stays as it is because
 * it does not concern this file.
 */
export function withDiskCode<T>(
  error: T,
  code: "write_failed" | "unreadable_file",
  file: string,
  advice: string,
): T | SkeinError {
  if (!(error instanceof Error) || error instanceof SkeinError) return error;
  if (codeOf(error) === "" || isOutOfDescriptors(error)) return error;
  return new SkeinError(code, { file, problem: error.message, advice }, { cause: error });
}

/** Whether a write failed because the disk is full, read-only or failing. Reads might still work. */
export function isWriteFailure(error: unknown): boolean {
  return ["write_failed", "ENOSPC", "EDQUOT", "EROFS", "EIO"].includes(codeOf(error));
}

/** Returns `null` if the file or its folder does not exist. */
function absentAsNull<T>(act: () => T): T | null {
  try {
    return act();
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

function statOf(stat: BigIntStats): DiskStat {
  return {
    size: Number(stat.size),
    identity: `${stat.dev}:${stat.ino}`,
    modifiedAt: Number(stat.mtimeMs),
    changedAt: stat.ctimeNs,
  };
}

/**
 * The real disk, except that it creates no folders after the root folder has been moved or deleted. Otherwise, the root
 * would reappear empty.
 */
export function diskInPlace(database: { checkInPlace(): void }): Disk {
  const makeFolder = (folder: string) => {
    database.checkInPlace();
    return realDisk.makeFolder(folder);
  };
  return { ...realDisk, makeFolder };
}

/** Whether a file can be read to its end, unlike a pipe or device. Follows links. */
export function isRegularFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** Rejects special files. Reading a pipe would wait for its writer, and reading a device might never end. */
export function refuseSpecialFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isFile() || stat.isDirectory()) return;
  const advice = "Name a .jsonl file";
  throw new SkeinError("unreadable_file", { file: path, problem: "it is not a regular file", advice });
}

/** Returns `null` if there is no such file. */
export function readWhole(disk: Disk, path: string): Uint8Array | null {
  const file = disk.openToRead(path);
  if (file === null) return null;
  try {
    return file.read(0, file.stat().size);
  } finally {
    file.close();
  }
}

/** Like `readWhole`, but only for a regular file, not for a folder, link or pipe. */
export function readOwn(disk: Disk, path: string): Uint8Array | null {
  return disk.kind(path) === "file" ? readWhole(disk, path) : null;
}

/** Parses a JSON file. Returns `undefined` if the file is damaged. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** Writes everything, or throws `ENOSPC`. */
export function appendWhole(file: DiskFile, bytes: Uint8Array): void {
  let written = 0;
  while (written < bytes.length) {
    const count = file.append(bytes.subarray(written));
    if (count === 0)
      throw Object.assign(new Error("the disk accepted only part of the write"), { code: "ENOSPC" });
    written += count;
  }
}

/** Larger writes would block the process for too long. */
const pieceBytes = 4 * 1024 * 1024;

async function appendInSlices(file: DiskFile, parts: Iterable<Uint8Array>): Promise<void> {
  const slices = Slices.underLock();
  let written = 0;
  for (const part of parts) {
    for (let at = 0; at < part.length; at += pieceBytes) {
      const piece = part.subarray(at, at + pieceBytes);
      written += piece.length;
      if (written > pieceBytes) {
        await slices.turn();
        written = piece.length;
      }
      appendWhole(file, piece);
    }
  }
}

/**
 * Replaces a file atomically and durably: writes and syncs a temporary file, renames it, and syncs the folder. Creates
 * missing folders. `around` performs the rename by calling its argument. If it throws, nothing is replaced.
 */
export async function replaceWhole(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  token: string,
  around: (rename: () => void) => void = (rename) => rename(),
): Promise<void> {
  await makeFolderDurably(disk, dirname(path));
  const temporary = await writeTemporary(disk, path, [bytes], token, true);
  try {
    around(() => disk.rename(temporary, path));
  } catch (error) {
    disk.unlink(temporary);
    throw error;
  }
  await disk.syncFolder(dirname(path));
}

/**
 * Writes a temporary file that consists of the given parts next to the target, and returns its path. A failed write
 * leaves nothing behind.
 */
export async function writeTemporary(
  disk: Disk,
  path: string,
  parts: Iterable<Uint8Array>,
  token: string,
  isDurable: boolean,
): Promise<string> {
  const temporary = join(dirname(path), `.${basename(path)}.${token}.tmp`);
  disk.unlink(temporary);
  const file = disk.create(temporary);
  try {
    await appendInSlices(file, parts);
    if (isDurable) await file.sync();
  } catch (error) {
    disk.unlink(temporary);
    throw error;
  } finally {
    file.close();
  }
  return temporary;
}

/** Creates a folder durably, including its parents. */
export async function makeFolderDurably(disk: Disk, folder: string): Promise<void> {
  for (const made of disk.makeFolder(folder)) await disk.syncFolder(dirname(made));
}

/** Deletes a folder recursively and durably. */
export async function removeTreeDurably(disk: Disk, folder: string): Promise<void> {
  if (!disk.isFolder(folder)) return;
  disk.removeTree(folder);
  await disk.syncFolder(dirname(folder));
}

/** Whether the error means that the file already exists. */
export function isFileExists(error: unknown): boolean {
  return codeOf(error) === "EEXIST";
}
