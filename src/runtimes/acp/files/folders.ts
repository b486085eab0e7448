import { constants, existsSync } from "node:fs";
import { lstat, mkdir, open, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";

/**
 * Folders on the way from the working directory to a file, each opened and none of them a link. On Linux a folder is held
 * by its descriptor, and what lies in it is named through /proc/self/fd: whatever is put in its place meanwhile, it is this
 * folder that is read and written. Elsewhere it is named by its path, and who swaps a folder for a link between the check
 * and the use is not noticed.
 */
export interface Folder {
  /** What a name is put behind. */
  readonly path: string;
  close(): Promise<void>;
}

const isHeld = process.platform === "linux" && existsSync("/proc/self/fd");
const asFolder = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** A file by the folder that it lies in. */
export interface Place {
  /** From the root to its folder, no links. */
  readonly way: readonly string[];
  /** Folders at the end of the way that are not there. */
  readonly missing: readonly string[];
  readonly name: string;
}

/** No system takes longer ones, and the folders of one that is missing are looked for one by one. */
const longestPath = 4096;

/** `null`: it is no path of a file inside. `root` is a real path. */
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
  // Where a folder is not there, what `..` after it means is anybody's guess.
  if (real === null || missing.includes("..")) return null;
  const way = relative(root, real);
  if (isAbsolute(way) || way === ".." || way.startsWith(`..${sep}`)) return null;
  return { way: way === "" ? [] : way.split(sep), missing, name };
}

/** `null`: there is nothing. A link to nothing is there, and is refused when it is entered. */
async function realOf(folder: string): Promise<string | null> {
  try {
    return await realpath(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** Opens the folder of a file; what is missing of it is made if `makes`. Throws as the file system does. */
export async function enter(root: string, place: Place, makes: boolean): Promise<Folder> {
  let folder = await openFolder(root);
  for (const [depth, name] of [...place.way, ...place.missing].entries()) {
    const next = join(folder.path, name);
    try {
      if (makes && depth >= place.way.length) await makeFolder(next);
      const inner = await openFolder(next);
      await folder.close();
      folder = inner;
    } catch (error) {
      await folder.close();
      throw error;
    }
  }
  return folder;
}

async function openFolder(path: string): Promise<Folder> {
  if (isHeld) {
    const handle = await open(path, asFolder);
    return { path: `/proc/self/fd/${handle.fd}`, close: () => handle.close() };
  }
  if (!(await lstat(path)).isDirectory()) throw Object.assign(new Error(path), { code: "ENOTDIR" });
  return { path, close: () => Promise.resolve() };
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

export function codeOf(error: unknown): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}
