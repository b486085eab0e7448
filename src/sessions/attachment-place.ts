import { lstat, mkdir, realpath, rmdir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { codeOf } from "../core/errors.ts";
import type { FileBoundary, FileOwner } from "../file-access/file-boundary.ts";
import type { Folder } from "../file-access/folders.ts";
import { openFolder } from "../file-access/folders.ts";
import type { AttachmentProblem } from "./attachments.ts";
import { nameProblem } from "./attachments.ts";

/** An open folder for attachments. It was opened without following links. The caller must close it. */
export interface OpenPlace {
  /** The folder's real path. */
  readonly folder: string;
  readonly opened: Folder;
  /** The folders that were created for this one, innermost first. */
  readonly made: readonly string[];
}

/** Where files are written: the session's own folder, or a path below its working directory. */
export interface PlaceWish {
  readonly owner: FileOwner;
  readonly files: Pick<FileBoundary, "checkPath">;
  readonly at: { readonly own: string } | { readonly cwd: string; readonly mountPath: string };
}

/** Returns the problem with a `mountPath`, or `null` if there is none. */
export function mountPathProblem(mountPath: string): AttachmentProblem | null {
  const refuse = (why: string): AttachmentProblem => ({
    code: "attachments_invalid_mount_path",
    error: `attachments_invalid_mount_path: ${why}`,
  });
  const inside = "Use a relative path inside the child's cwd";
  if (isAbsolute(mountPath) || /^[A-Za-z]:/.test(mountPath)) return refuse(`it is absolute. ${inside}.`);
  for (const segment of segmentsOf(mountPath)) {
    if (segment === "..") return refuse(`".." leads outside its folder. ${inside}.`);
    const wrong = nameProblem(segment.normalize("NFC"));
    if (wrong !== null) return refuse(`the folder name ${JSON.stringify(segment)} is not allowed: ${wrong}.`);
  }
  return null;
}

/**
 * Opens a folder for files with these names and creates missing folders with mode 0700. If a link or file already
 * occupies the path, or a name is not allowed there, the created folders are removed again.
 */
export async function openPlace(
  { at, owner, files }: PlaceWish,
  names: readonly string[],
): Promise<OpenPlace | AttachmentProblem> {
  if ("own" in at) await mkdir(dirname(at.own), { recursive: true, mode: 0o700 });
  else {
    const problem = mountPathProblem(at.mountPath);
    if (problem !== null) return problem;
  }
  const base = await realpath("own" in at ? dirname(at.own) : at.cwd);
  const missing = "own" in at ? [basename(at.own)] : segmentsOf(at.mountPath);
  const wanted = join(base, ...missing);
  const isRefused = (folder: string) =>
    names.find((name) => "refusal" in files.checkPath(owner, join(folder, name), "write"));
  if (isRefused(wanted) !== undefined) return notAllowed(`${isRefused(wanted)} cannot be written there`);
  const made: string[] = [];
  const onMade = (path: string) => void made.unshift(path);
  try {
    const opened = await openFolder(base, { way: [], missing }, { mode: 0o700, onMade });
    // A parent folder might have been moved since it was opened.
    const folder = await opened.realPath();
    if (folder === wanted && isRefused(folder) === undefined) return { folder, opened, made };
    await opened.close();
    await closeEmpty(made);
    return notAllowed("the path leads to a different folder");
  } catch (error) {
    await closeEmpty(made);
    if (!["ENOTDIR", "ELOOP", "EMLINK"].includes(codeOf(error))) throw error;
    return notAllowed("one of its folders is a link or is not a folder");
  }
}

function notAllowed(why: string): AttachmentProblem {
  const code = "attachments_path_not_allowed";
  return { code, error: `${code}: ${why}` };
}

/** Removes the given empty folders in order, and stops at the first one that cannot be removed. */
export async function closeEmpty(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const isGone = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!isGone) return;
  }
}

/** Whether the path is a folder rather than a link to one. */
export async function isRealFolder(path: string): Promise<boolean> {
  return lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

function segmentsOf(mountPath: string): readonly string[] {
  return mountPath.replace(/^(?:\.\/)+|\/+$/g, "").split("/");
}
