import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, realpath, rm, unlink } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { codeOf, SkeinError } from "../core/errors.ts";
import { isRecord } from "../core/is-record.ts";
import { thrownText } from "../core/text.ts";
import type { App } from "./app.ts";
import type { OpenPlace, PlaceWish } from "./attachment-place.ts";
import { closeEmpty, isRealFolder, openPlace } from "./attachment-place.ts";
import type { Attachment, AttachmentFacts, AttachmentProblem, AttachmentReceipt } from "./attachments.ts";
import { hasNotes, manifestName, nameProblem, readAttachments, receiptByNotes } from "./attachments.ts";
import type { SpawnTerms } from "./spawn-checks.ts";
import type { SpawnNames, SpawnRefusal, SpawnRequest } from "./spawn-request.ts";

/** A child session's attachments. They are written before the session is created. */
export interface ChildFiles {
  readonly folder: string;
  /** The folder, relative to the child's working directory. `null` if it is outside that directory. */
  readonly path: string | null;
  readonly receipt: AttachmentReceipt;
  undo(): Promise<void>;
}

/** Writes a child's attachments. Returns `null` if it has none. */
export async function placeFiles(
  { files }: Pick<App, "files">,
  userId: string | null,
  { attachments: given, mountPath }: SpawnRequest,
  { own: { subagents }, target, cwd, attachments }: SpawnTerms,
  { sessionId }: SpawnNames,
): Promise<ChildFiles | null | SpawnRefusal> {
  if (given.length === 0) return null;
  const owner = { userId, agentId: target.id, sessionId };
  const own = mountPath === undefined ? files.attachments(owner) : null;
  if (mountPath === undefined && own === null) return refuse(noPlace);
  if (own !== null) files.checkRootInPlace();
  const wish = { owner, files, at: own === null ? { cwd, mountPath: mountPath ?? "" } : { own } };
  const receipt = receiptByNotes(given);
  const isReplay = hasNotes(given);
  const placed: WrittenAttachments | AttachmentProblem | null = isReplay
    ? await findWritten(wish, sessionId, receipt.files)
    : await writeAttachments(wish, sessionId, attachments);
  if (placed === null) {
    const read = readAttachments(given, subagents.attachments);
    return refuse("code" in read ? read : noPlace);
  }
  return "code" in placed
    ? refuse(placed)
    : { ...placed, path: await pathBelow(placed.folder, cwd), receipt };
}

/**
 * Returns the path of `folder` relative to `cwd`, or `null` if `folder` is not inside `cwd`. `folder` must be a real
 * path.
 */
async function pathBelow(folder: string, cwd: string): Promise<string | null> {
  const base = await realpath(cwd).catch(() => cwd);
  const path = relative(base, folder);
  return path === "" || isAbsolute(path) || path.split(sep)[0] === ".." ? null : path.split(sep).join("/");
}

const noPlace: AttachmentProblem = {
  code: "attachments_unavailable",
  error: "attachments_unavailable: this store has no files; use attachAs.mountPath or omit the attachments",
};

function refuse(problem: AttachmentProblem): SpawnRefusal {
  return { status: "error", ...problem };
}

/** Files written for a new session. */
export interface WrittenAttachments {
  readonly folder: string;
  /** Removes only the files and folders that were written. */
  undo(): Promise<void>;
}

/**
 * Writes the files for a session that is about to be created. Files are synced and have mode 0600. Files left by an
 * earlier attempt for the same session are removed first. No other existing file is replaced, and no link is followed.
 */
export async function writeAttachments(
  wish: PlaceWish,
  sessionId: string,
  attachments: readonly Attachment[],
): Promise<WrittenAttachments | AttachmentProblem> {
  const names = [manifestName, ...attachments.map(({ name }) => name)];
  try {
    // The session's own folder can contain only files from an interrupted attempt.
    if ("own" in wish.at) await rm(wish.at.own, { recursive: true, force: true });
    else if (!(await removeLeft(wish, names, sessionId))) return taken();
    const place = await openPlace(wish, names);
    if ("code" in place) return place;
    return await writeInto(place, sessionId, attachments).finally(() => place.opened.close());
  } catch (error) {
    return failed(error);
  }
}

/**
 * Removes files left by an earlier attempt for the same session. Returns `false` if the files belong to another
 * session.
 */
async function removeLeft(wish: PlaceWish, names: readonly string[], sessionId: string): Promise<boolean> {
  const place = await openPlace(wish, names);
  if ("code" in place) return true;
  const left = await readManifest(place.opened.path);
  await place.opened.close();
  if (left === null) await closeEmpty(place.made);
  else if (left.sessionId === sessionId) await removeListed(place.folder);
  return left === null || left.sessionId === sessionId;
}

/** Returns the files that an earlier attempt wrote for a session if all of them match `files`, otherwise `null`. */
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
    if ((await opened.realPath()) !== folder) throw new Error("the folder was moved");
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
    "attachments_path_taken: files with these names already exist there; use a different mountPath";
  return { code: "attachments_path_taken", error };
}

function failed(error: unknown): AttachmentProblem {
  const code = "attachments_materialization_failed";
  return { code, error: `${code} (${codeOf(error) || thrownText(error)})` };
}

/**
 * Lists a session's files. The manifest is written first so that, after a crash, it names every file that might exist.
 */
export interface Manifest {
  readonly sessionId: string;
  /** The number of parent folders that were created for the files. */
  readonly foldersMade: number;
  readonly files: readonly (AttachmentFacts & { readonly mimeType?: string })[];
}

/**
 * Returns `null` if there is no readable manifest. The names are checked because anyone with write access to the folder
 * could forge them.
 */
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

/** Whether every file exists and is unchanged. */
export async function isComplete(folder: string, { files }: Manifest): Promise<boolean> {
  const right = await Promise.all(files.map((file) => isUnchanged(folder, file)));
  return right.every((each) => each);
}

async function isUnchanged(folder: string, { name, sha256 }: AttachmentFacts): Promise<boolean> {
  const bytes = await readReal(join(folder, name));
  return bytes !== null && createHash("sha256").update(bytes).digest("hex") === sha256;
}

/** Returns the content of a regular file, or `null` if it is a link or does not exist. */
async function readReal(path: string): Promise<Buffer | null> {
  try {
    // Without O_NONBLOCK, opening a named pipe would block.
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

/**
 * Removes a session's files. Its own folder is removed entirely. From any other folder, only the listed files that have
 * not changed are removed.
 */
export async function removeAttachments(folder: string, isOwn: boolean): Promise<void> {
  if (isOwn) await rm(folder, { recursive: true, force: true });
  else await removeListed(folder);
}

/** Removes the files that a session was given. Keeps other sessions' files and files that have changed. */
export async function removeHandedFiles(folder: string, sessionId: string): Promise<void> {
  try {
    if ((await readManifest(folder))?.sessionId === sessionId) await removeListed(folder);
  } catch (error) {
    const advice = "Make the folder writable or delete the files, then try again";
    throw new SkeinError(
      "write_failed",
      { file: folder, problem: thrownText(error), advice },
      { cause: error },
    );
  }
}

/** Removes the unchanged files in a manifest, the manifest itself, and the folders created for it if they are empty. */
async function removeListed(folder: string): Promise<void> {
  if (!(await isRealFolder(folder)) || (await realpath(folder)) !== folder) return;
  const manifest = await readManifest(folder);
  if (manifest === null) return;
  for (const file of manifest.files)
    if (await isUnchanged(folder, file)) await unlinkIfThere(join(folder, file.name));
  await unlinkIfThere(join(folder, manifestName));
  await closeEmpty(upwards(folder, manifest.foldersMade));
}

/** Returns the folder and its ancestors, innermost first, up to `count` folders in total. */
function upwards(folder: string, count: number): readonly string[] {
  const folders: string[] = [];
  for (let at = folder; folders.length < count && dirname(at) !== at; at = dirname(at)) folders.push(at);
  return folders;
}

/** Removes a file that another attempt might already have removed. */
async function unlinkIfThere(path: string): Promise<void> {
  await unlink(path).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}
