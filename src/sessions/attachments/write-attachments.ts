import { constants } from "node:fs";
import { open, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { thrownText } from "../../core/text.ts";
import type { Attachment, AttachmentFacts, AttachmentProblem } from "./contract.ts";
import { manifestName } from "./contract.ts";
import type { Manifest } from "./manifest.ts";
import { isComplete, readManifest } from "./manifest.ts";
import type { OpenPlace, PlaceWish } from "./place.ts";
import { closeEmpty, codeOf, openPlace } from "./place.ts";
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
  try {
    // Nobody else's things are in a folder of its own: half of them would be of a try that was cut off.
    if ("own" in wish) await rm(wish.own, { recursive: true, force: true });
    const place = await openPlace(wish);
    if ("code" in place) return place;
    const { folder } = place;
    const left = await readManifest(folder);
    if (left?.sessionId === sessionId) await removeListed(folder);
    else if (left !== null) return taken();
    return await writeInto(left === null ? place : await reopened(wish), sessionId, attachments);
  } catch (error) {
    return failed(error);
  }
}

/** The files of a session that an earlier try has written, if they are all there as `files` says; `null`: they are not. */
export async function findWritten(
  wish: PlaceWish,
  sessionId: string,
  files: readonly AttachmentFacts[],
): Promise<WrittenAttachments | null> {
  const place = await openPlace(wish).catch((error: unknown) => {
    if (codeOf(error) === null) throw error;
    return null;
  });
  if (place === null || "code" in place) return null;
  const { folder } = place;
  const left = await readManifest(folder);
  const facts = left?.files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 }));
  const isOurs = left?.sessionId === sessionId && isDeepStrictEqual(facts, files);
  if (left !== null && isOurs && (await isComplete(folder, left))) {
    return { folder, undo: () => removeListed(folder) };
  }
  await closeEmpty(place.made);
  return null;
}

async function reopened(wish: PlaceWish): Promise<OpenPlace> {
  const place = await openPlace(wish);
  if ("code" in place) throw new Error(place.error);
  return place;
}

async function writeInto(
  { folder, made }: OpenPlace,
  sessionId: string,
  attachments: readonly Attachment[],
): Promise<WrittenAttachments | AttachmentProblem> {
  const written: string[] = [];
  const undo = async () => {
    for (const path of written.splice(0).toReversed()) await unlinkIfThere(path);
    await closeEmpty(made);
  };
  const write = async (name: string, bytes: Uint8Array) => {
    await writeNew(join(folder, name), bytes, () => written.push(join(folder, name)));
  };
  try {
    await write(manifestName, manifestOf(sessionId, made.length, attachments));
    for (const { name, bytes } of attachments) await write(name, bytes);
    await syncFolder(folder);
    // Whoever has put a link in the place of the folder meanwhile gets no session for it.
    if ((await realpath(folder)) !== folder) throw new Error("the folder was moved away");
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
  return { code, error: `${code} (${codeOf(error) ?? thrownText(error)})` };
}
