import { lstat, mkdir, realpath, rmdir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { isRecord } from "../../core/shape.ts";
import type { AttachmentProblem } from "./contract.ts";
import { nameProblem } from "./names.ts";

/** A folder for attachments: there, real, and with no link on the way from its base. */
export interface OpenPlace {
  readonly folder: string;
  /** The folders that were made for it, the innermost first. */
  readonly made: readonly string[];
}

/** Where files go: into a folder of the session's own, or under one that a path from its working directory names. */
export type PlaceWish = { readonly own: string } | { readonly cwd: string; readonly mountPath: string };

/** What is wrong with a `mountPath` as it is written; `null`: nothing. */
export function mountPathProblem(mountPath: string): AttachmentProblem | null {
  const refuse = (why: string): AttachmentProblem => ({
    code: "attachments_invalid_mount_path",
    error: `attachments_invalid_mount_path: ${why}`,
  });
  if (isAbsolute(mountPath) || /^[A-Za-z]:/.test(mountPath)) return refuse("it must be relative to cwd");
  for (const segment of segmentsOf(mountPath)) {
    const wrong = nameProblem(segment.normalize("NFC"));
    if (wrong !== null) return refuse(`of one of its folders, ${wrong}`);
  }
  return null;
}

/** Makes what is missing of a place, 0700. Whatever is in the way (a link, a file) refuses it, and what was made is gone. */
export async function openPlace(wish: PlaceWish): Promise<OpenPlace | AttachmentProblem> {
  if ("own" in wish) {
    await mkdir(dirname(wish.own), { recursive: true, mode: 0o700 });
    return stepInto(await realpath(dirname(wish.own)), [basename(wish.own)]);
  }
  return mountPathProblem(wish.mountPath) ?? stepInto(await realpath(wish.cwd), segmentsOf(wish.mountPath));
}

async function stepInto(base: string, segments: readonly string[]): Promise<OpenPlace | AttachmentProblem> {
  const made: string[] = [];
  let folder = base;
  for (const segment of segments) {
    folder = join(folder, segment);
    if (await madeFolder(folder)) made.unshift(folder);
    else if (!(await isRealFolder(folder))) {
      await closeEmpty(made);
      const error = `attachments_path_not_allowed: ${segment} is a link, or no folder`;
      return { code: "attachments_path_not_allowed", error };
    }
  }
  if ((await realpath(folder)) === folder) return { folder, made };
  await closeEmpty(made);
  const error = "attachments_path_not_allowed: the folder leads elsewhere";
  return { code: "attachments_path_not_allowed", error };
}

/** Takes folders away that nobody has put anything into. */
export async function closeEmpty(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const isGone = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!isGone) return;
  }
}

/** A folder, and not a link to one. */
export async function isRealFolder(path: string): Promise<boolean> {
  return lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function madeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

export function codeOf(error: unknown): string | null {
  return isRecord(error) && typeof error.code === "string" ? error.code : null;
}

function segmentsOf(mountPath: string): readonly string[] {
  return mountPath.replace(/^(?:\.\/)+|\/+$/g, "").split("/");
}
