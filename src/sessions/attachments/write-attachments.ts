import { constants } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { codeOf } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import type { Attachment, AttachmentFacts, AttachmentProblem } from "./contract.ts";
import { manifestName } from "./contract.ts";
import type { Manifest } from "./manifest.ts";
import { isComplete, readManifest } from "./manifest.ts";
import type { OpenPlace, PlaceWish } from "./place.ts";
import { closeEmpty, openPlace } from "./place.ts";
import { removeListed, unlinkIfThere } from "./remove-attachments.ts";

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
