import { constants, existsSync } from "node:fs";
import { lstat, mkdir, open, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { codeOf } from "../core/errors.ts";

/**
 * An open folder that was reached without following a link. On Linux, it is held open by its descriptor and addressed
 * through /proc/self/fd, so replacing the folder afterward has no effect. On other systems, it is addressed by its
 * path, and a replacement between check and use goes unnoticed.
 */
export interface Folder {
  /** The prefix for file names in the folder. */
  readonly path: string;
  /** Returns the folder's current location, with links resolved. */
  realPath(): Promise<string>;
  close(): Promise<void>;
}

const isHeld = process.platform === "linux" && existsSync("/proc/self/fd");
const asFolder = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** A file, identified by the folder that contains it. */
interface Place {
  /** The names of the folders from the root to the file's folder, none of which is a link. */
  readonly way: readonly string[];
  /** The names of the missing folders that follow `way`. */
  readonly missing: readonly string[];
  readonly name: string;
}

/** No system accepts longer paths. The limit matters because the folders in a missing path are looked up one by one. */
const longestPath = 4096;

/** Returns `null` if the path does not name a file inside `root`. `root` must be a real path. */
export async function placeOf(path: string, root: string): Promise<Place | null> {
  if (path.length > longestPath) return null;
  const name = basename(path);
  const isFile = !path.endsWith("/") && !path.endsWith(sep) && !["", ".", ".."].includes(name);
  if (!isAbsolute(path) || path.includes("\0") || !isFile) return null;
  const missing: string[] = [];
  let folder = dirname(path);
  let real = await realOf(folder);
  for (; real === null && folder !== dirname(folder); real = await realOf(folder)) {
    if (basename(folder) !== ".") missing.unshift(basename(folder));
    folder = dirname(folder);
  }
  // The meaning of `..` after a missing folder is undefined.
  if (real === null || missing.includes("..")) return null;
  const way = relative(root, real);
  if (isAbsolute(way) || way === ".." || way.startsWith(`..${sep}`)) return null;
  return { way: way === "" ? [] : way.split(sep), missing, name };
}

/** Returns `null` if the folder does not exist or is a dangling link. The link is rejected when it is opened. */
async function realOf(folder: string): Promise<string | null> {
  try {
    return await realpath(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

interface FolderCreation {
  readonly mode?: number;
  /** Called for each folder that is created, starting with the outermost. */
  onMade?(path: string): void;
}

/**
 * Opens a folder below `root`, which must be a real path, without following links. If `creation` is set, creates
 * missing folders. Throws file system errors, such as ENOTDIR or ELOOP if there is a link or a file in the path.
 */
export async function openFolder(
  root: string,
  { way, missing }: Omit<Place, "name">,
  creation: FolderCreation | null,
): Promise<Folder> {
  let folder = await openOne(root);
  let path = root;
  for (const [depth, name] of [...way, ...missing].entries()) {
    const next = join(folder.path, name);
    path = join(path, name);
    try {
      if (creation !== null && depth >= way.length && (await makeFolder(next, creation)))
        creation.onMade?.(path);
      const inner = await openOne(next);
      await folder.close();
      folder = inner;
    } catch (error) {
      await folder.close();
      throw error;
    }
  }
  return folder;
}

async function openOne(path: string): Promise<Folder> {
  if (isHeld) {
    const handle = await open(path, asFolder);
    const held = `/proc/self/fd/${handle.fd}`;
    return { path: held, realPath: () => realpath(held), close: () => handle.close() };
  }
  if (!(await lstat(path)).isDirectory()) throw Object.assign(new Error(path), { code: "ENOTDIR" });
  return { path, realPath: () => realpath(path), close: () => Promise.resolve() };
}

async function makeFolder(path: string, { mode = 0o777 }: FolderCreation): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    return false;
  }
}
