import { randomUUID } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { codeOf, SkeinError } from "../../core/errors.ts";
import type { BackupFile, BackupManifest } from "./backup.ts";
import { copyBytes, isWithin, manifestFormat, manifestName } from "./backup.ts";
import type { Progress } from "./check.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readOwn, removeTreeDurably, replaceWhole } from "./disk-files.ts";
import { workDbName } from "./layout.ts";

/**
 * Makes a root folder of a backup. Every file is compared with the list of the backup while it is copied; the copy gets its name
 * when all of it is right and durable, so that no half folder ever has it.
 */
export async function restoreFiles(
  disk: Disk,
  backup: string,
  target: string,
  progress: Progress,
  /** The configuration as the new folder needs it; `null`: as it is. */
  configure: (text: string) => string | null = () => null,
): Promise<BackupManifest> {
  const manifest = readManifest(disk, backup);
  checkTarget(disk, backup, target);
  await makeFolderDurably(disk, dirname(target));
  const unfinished = join(dirname(target), `.${basename(target)}.restore-${randomUUID()}`);
  try {
    await makeFolderDurably(disk, unfinished);
    for (const [index, file] of manifest.files.entries()) {
      progress(index, manifest.files.length);
      await restoreFile(disk, backup, file, join(unfinished, file.path));
    }
    progress(manifest.files.length, manifest.files.length);
    if (manifest.configuration !== null) {
      const path = join(unfinished, manifest.configuration);
      const text = configure(Buffer.from(readOwn(disk, path) ?? []).toString("utf8"));
      if (text !== null) await replaceWhole(disk, path, Buffer.from(text), randomUUID());
    }
    putInPlace(disk, unfinished, target);
  } catch (error) {
    await removeTreeDurably(disk, unfinished);
    throw error;
  }
  await disk.syncFolder(dirname(target));
  return manifest;
}

function readManifest(disk: Disk, backup: string): BackupManifest {
  const file = join(backup, manifestName);
  const bytes = readOwn(disk, file);
  if (bytes === null)
    throw unusableBackup(file, "it is not there, so this is no backup, or one that was cut off");
  let found: Partial<BackupManifest> | null = null;
  try {
    found = JSON.parse(Buffer.from(bytes).toString("utf8")) as Partial<BackupManifest> | null;
  } catch {
    throw unusableBackup(file, "it is not JSON");
  }
  if (found?.format !== manifestFormat || !Array.isArray(found.files))
    throw unusableBackup(file, `it is not a list of files in the format ${manifestFormat}`);
  const { files, configuration = null } = found;
  for (const each of files) checkListed(file, each, configuration);
  if (!files.some(({ path }) => path === workDbName))
    throw unusableBackup(file, `it does not list ${workDbName}`);
  return { format: manifestFormat, createdAt: String(found.createdAt), configuration, files };
}

/** At the top lie only files that a backup puts there: a `token`, say, would let its author in. */
function checkListed(manifest: string, file: Partial<BackupFile>, configuration: string | null): void {
  const { path, bytes, sha256 } = file;
  const names = typeof path === "string" ? path.split("/") : [];
  const isPlain = names.every((name) => /^[^.\\\0][^\\\0]*$/.test(name));
  const isPlaced = names.length > 1 || [workDbName, "user.json", configuration].includes(path ?? "");
  const isConfig = path !== configuration || /^skein\.(?:yaml|yml|json)$/.test(path ?? "");
  const isMeasured = Number.isSafeInteger(bytes) && typeof sha256 === "string";
  if (names.length > 0 && isPlain && isPlaced && isConfig && isMeasured) return;
  throw unusableBackup(manifest, `it lists ${JSON.stringify(path)}, which does not belong into a backup`);
}

function checkTarget(disk: Disk, backup: string, target: string): void {
  const kind = disk.kind(target);
  const problem =
    kind !== null && (kind !== "folder" || disk.list(target).length > 0)
      ? `The folder ${target} is not empty`
      : isWithin(backup, target)
        ? `The folder ${target} lies in the backup`
        : null;
  if (problem === null) return;
  const advice = "Name a new folder with --dir";
  throw new SkeinError("invalid_arguments", { problem, advice });
}

/** An empty folder of that name gives way; one that was filled meanwhile does not. */
function putInPlace(disk: Disk, unfinished: string, target: string): void {
  try {
    disk.rename(unfinished, target);
  } catch (error) {
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
    const advice = "Name a new folder with --dir";
    throw new SkeinError("conflict", { problem: `The folder ${target} was filled meanwhile`, advice });
  }
}

async function restoreFile(disk: Disk, backup: string, listed: BackupFile, target: string): Promise<void> {
  const path = join(backup, listed.path);
  const from = isReachedWithoutLinks(disk, backup, listed.path) ? disk.openToRead(path) : null;
  if (from === null)
    throw unusableBackup(path, "the list of the backup has it, and it is not there as a file");
  try {
    if (from.size() !== listed.bytes)
      throw unusableBackup(path, `it has ${from.size()} bytes, and had ${listed.bytes} when it was copied`);
    const { sha256 } = await copyBytes(disk, from, listed.bytes, target);
    if (sha256 !== listed.sha256) throw unusableBackup(path, "its contents are not those that were copied");
  } finally {
    from.close();
  }
}

function isReachedWithoutLinks(disk: Disk, backup: string, path: string): boolean {
  const names = path.split("/");
  return names.every((_, index) => {
    const kind = disk.kind(join(backup, ...names.slice(0, index + 1)));
    return kind === (index === names.length - 1 ? "file" : "folder");
  });
}

function unusableBackup(file: string, problem: string): SkeinError {
  const advice = "Nothing was restored; use another backup";
  return new SkeinError("unreadable_file", { file, problem, advice });
}
