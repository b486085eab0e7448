import { realpath, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf, SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";
import { manifestName } from "./contract.ts";
import { isUnchanged, readManifest } from "./manifest.ts";
import { closeEmpty, isRealFolder } from "./place.ts";

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
