import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, realpath, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { codeOf, SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/shape.ts";
import { thrownText } from "../core/text.ts";
import type { OpenPlace, PlaceWish } from "./attachment-place.ts";
import { closeEmpty, isRealFolder, openPlace } from "./attachment-place.ts";
import type { Attachment, AttachmentFacts, AttachmentProblem } from "./attachments.ts";
import { manifestName, nameProblem } from "./attachments.ts";

/** Files that lie where a new session finds them. */
export interface WrittenAttachments {
  readonly folder: string;
  /** Takes away what was written, and nothing else. */
  undo(): Promise<void>;
}

/**
 * Writes the files of a session that is about to be made, synced: 0600, new ones alone, through no link. Those that an
 * earlier try for the same session left behind are taken up, or made anew.
 */
export async function writeAttachments(
  wish: PlaceWish,
  sessionId: string,
  attachments: readonly Attachment[],
): Promise<WrittenAttachments | AttachmentProblem> {
  const names = [manifestName, ...attachments.map(({ name }) => name)];
  try {
    // Nobody else's things are in a folder of its own: half of them would be of a try that was cut off.
    if ("own" in wish.at) await rm(wish.at.own, { recursive: true, force: true });
    else if (!(await removeLeft(wish, names, sessionId))) return taken();
    const place = await openPlace(wish, names);
    if ("code" in place) return place;
    return await writeInto(place, sessionId, attachments).finally(() => place.opened.close());
  } catch (error) {
    return failed(error);
  }
}

/** Removes what an earlier try for the same session left behind; `false`: the files there are another session's. */
async function removeLeft(wish: PlaceWish, names: readonly string[], sessionId: string): Promise<boolean> {
  const place = await openPlace(wish, names);
  if ("code" in place) return true;
  const left = await readManifest(place.opened.path);
  await place.opened.close();
  if (left === null) await closeEmpty(place.made);
  else if (left.sessionId === sessionId) await removeListed(place.folder);
  return left === null || left.sessionId === sessionId;
}

/** The files of a session that an earlier try has written, if they are all there as `files` says; `null`: they are not. */
export async function findWritten(
  wish: PlaceWish,
  sessionId: string,
  files: readonly AttachmentFacts[],
): Promise<WrittenAttachments | null> {
  const names = [manifestName, ...files.map(({ name }) => name)];
  const place = await openPlace(wish, names).catch((error: unknown) => {
    if (codeOf(error) === "") throw error;
    return null;
  });
  if (place === null || "code" in place) return null;
  const { folder, opened, made } = place;
  try {
    const left = await readManifest(opened.path);
    const facts = left?.files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
    const isOurs = left?.sessionId === sessionId && isDeepStrictEqual(facts, files);
    if (left !== null && isOurs && (await isComplete(opened.path, left))) {
      return { folder, undo: () => removeListed(folder) };
    }
    await closeEmpty(made);
    return null;
  } finally {
    await opened.close();
  }
}

async function writeInto(
  { folder, opened, made }: OpenPlace,
  sessionId: string,
  attachments: readonly Attachment[],
): Promise<WrittenAttachments | AttachmentProblem> {
  const written: string[] = [];
  const undo = async () => {
    for (const path of written.splice(0).toReversed()) await unlinkIfThere(path);
    await closeEmpty(made);
  };
  const write = async (name: string, bytes: Uint8Array) => {
    await writeNew(join(opened.path, name), bytes, () => written.push(join(folder, name)));
  };
  try {
    await write(manifestName, manifestOf(sessionId, made.length, attachments));
    for (const { name, bytes } of attachments) await write(name, bytes);
    await syncFolder(opened.path);
    if ((await opened.realPath()) !== folder) throw new Error("the folder was moved away");
    return { folder, undo };
  } catch (error) {
    await undo();
    return codeOf(error) === "EEXIST" ? taken() : failed(error);
  }
}

function manifestOf(sessionId: string, foldersMade: number, attachments: readonly Attachment[]): Uint8Array {
  const files = attachments.map(({ name, bytes, sha256, mimeType }) => ({
    name,
    bytes: bytes.length,
    sha256,
    ...(mimeType === undefined ? {} : { mimeType }),
  }));
  const manifest: Manifest = { sessionId, foldersMade, files };
  return Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`, "utf8");
}

async function writeNew(path: string, bytes: Uint8Array, made: () => void): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o600);
  made();
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function taken(): AttachmentProblem {
  const error =
    "attachments_path_taken: files of one of these names are there already; use another mountPath";
  return { code: "attachments_path_taken", error };
}

function failed(error: unknown): AttachmentProblem {
  const code = "attachments_materialization_failed";
  return { code, error: `${code} (${codeOf(error) || thrownText(error)})` };
}

/** The list of a session's files. It is written first: whatever of them is there, it says what belongs to it. */
export interface Manifest {
  readonly sessionId: string;
  /** How many of the folders on the way were made for it. */
  readonly foldersMade: number;
  readonly files: readonly (AttachmentFacts & { readonly mimeType?: string })[];
}

/** `null`: there is none that can be read. Names in it are checked: who can write here could have written it. */
export async function readManifest(folder: string): Promise<Manifest | null> {
  const bytes = await readReal(join(folder, manifestName));
  if (bytes === null) return null;
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return isManifest(value) ? value : null;
  } catch {
    return null;
  }
}

/** Whether every file is there, as it was written. */
export async function isComplete(folder: string, { files }: Manifest): Promise<boolean> {
  const right = await Promise.all(files.map((file) => isUnchanged(folder, file)));
  return right.every((each) => each);
}

export async function isUnchanged(folder: string, { name, sha256 }: AttachmentFacts): Promise<boolean> {
  const bytes = await readReal(join(folder, name));
  return bytes !== null && createHash("sha256").update(bytes).digest("hex") === sha256;
}

/** A file that is one, and no link; `null`: there is none. */
async function readReal(path: string): Promise<Buffer | null> {
  try {
    // Without O_NONBLOCK a pipe of that name would keep us waiting.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return (await file.stat()).isFile() ? await file.readFile() : null;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (codeOf(error) === "") throw error;
    return null;
  }
}

function isManifest(value: unknown): value is Manifest {
  if (!isRecord(value) || typeof value.sessionId !== "string" || !Array.isArray(value.files)) return false;
  if (!Number.isInteger(value.foldersMade)) return false;
  return value.files.every(
    (file) =>
      isRecord(file) &&
      typeof file.name === "string" &&
      nameProblem(file.name) === null &&
      typeof file.sha256 === "string",
  );
}

/** Takes the files of a session away. A folder of its own goes as it is; in anybody else's, what was written goes and no more. */
export async function removeAttachments(folder: string, isOwn: boolean): Promise<void> {
  if (isOwn) await rm(folder, { recursive: true, force: true });
  else await removeListed(folder);
}

/** The files that a session was handed, wherever they lie; those of another session, and files that were changed, stay. */
export async function removeHandedFiles(folder: string, sessionId: string): Promise<void> {
  try {
    if ((await readManifest(folder))?.sessionId === sessionId) await removeListed(folder);
  } catch (error) {
    const advice = "Make the folder writable or delete the files, and try again";
    throw new SkeinError(
      "write_failed",
      { file: folder, problem: thrownText(error), advice },
      { cause: error },
    );
  }
}

/** What the manifest of a folder names and nobody has changed since, the manifest, and the folders that were made for it. */
export async function removeListed(folder: string): Promise<void> {
  if (!(await isRealFolder(folder)) || (await realpath(folder)) !== folder) return;
  const manifest = await readManifest(folder);
  if (manifest === null) return;
  for (const file of manifest.files)
    if (await isUnchanged(folder, file)) await unlinkIfThere(join(folder, file.name));
  await unlinkIfThere(join(folder, manifestName));
  await closeEmpty(upwards(folder, manifest.foldersMade));
}

/** `count` folders from this one up, the innermost first. */
function upwards(folder: string, count: number): readonly string[] {
  const folders: string[] = [];
  for (let at = folder; folders.length < count && dirname(at) !== at; at = dirname(at)) folders.push(at);
  return folders;
}

/** As another try may have done it before. */
export async function unlinkIfThere(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}
