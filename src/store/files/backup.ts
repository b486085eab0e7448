import { createHash, randomUUID } from "node:crypto";
import { chmodSync } from "node:fs";
import { basename, dirname, extname, join, relative, sep } from "node:path";
import { codeOf, SkeinError } from "../../core/errors.ts";
import type { Progress } from "./check.ts";
import { DatabaseSync } from "./database.ts";
import type { Disk, DiskFile } from "./disk.ts";
import {
  appendWhole,
  makeFolderDurably,
  parseJson,
  readOwn,
  removeTreeDurably,
  replaceWhole,
} from "./disk.ts";
import {
  agentFolder,
  agentsIn,
  namesIn,
  sessionPaths,
  sessionsIn,
  trashedPaths,
  trashIn,
  userFile,
  workDbName,
} from "./layout.ts";
import type { SessionCatalog } from "./session-catalog.ts";

/** A file as listed at the start of the backup. */
interface Listed {
  readonly path: string;
  readonly size: number;
  readonly identity: string;
  /**
   * The other paths that a log can have. It might move into or out of the trash during the backup. `null` if the file
   * is not a log.
   */
  readonly elsewhere: readonly string[] | null;
}

/** The manifest is written last, so a backup without one is incomplete. */
const manifestName = "backup.json";
const manifestFormat = "skein-backup-1";

interface BackupFile {
  /** Path relative to the backup, with slashes. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface BackupManifest {
  readonly format: typeof manifestFormat;
  readonly createdAt: string;
  /** The backup's configuration file, or `null` if there is none. */
  readonly configuration: string | null;
  readonly files: readonly BackupFile[];
}

export interface BackupOptions {
  /** A configuration file, copied as `skein.yaml` or `skein.json`. */
  readonly configuration?: string;
  /** Tables of `work.db` that are empty in the copy. */
  readonly emptyTables?: readonly string[];
}

export interface BackupDone {
  readonly files: number;
  readonly bytes: number;
  /** The name of the configuration file in the backup, or `null` if there is none. */
  readonly configuration: string | null;
}

/** Whether `inner` is `outer` or inside it. */
function isWithin(outer: string, inner: string): boolean {
  const between = relative(outer, inner);
  return between === "" || (between !== ".." && !between.startsWith(`..${sep}`) && !between.startsWith(sep));
}

/**
 * Copies everything that cannot be rebuilt, as of a single point in time. While `work.db` is locked against writes, it
 * is copied and the size of every log is recorded. The logs are then copied up to those sizes, even if they have been
 * moved since. State and blobs are copied in full. Links are skipped. The copy is a root folder with a manifest.
 */
export async function backupFiles(
  catalog: SessionCatalog,
  folder: string,
  progress: Progress,
  options: BackupOptions = {},
): Promise<BackupDone> {
  const { databases, disk, root } = catalog.settings;
  checkTarget(disk, root, folder);
  await makeFolderDurably(disk, folder);
  const listed = catalog.work.exclusively(() => {
    copyDatabase(join(databases, workDbName), join(folder, workDbName));
    return filesIn(catalog);
  });
  emptyTables(join(folder, workDbName), options.emptyTables ?? []);
  const files = [await describeFile(disk, folder, workDbName)];
  const configuration = options.configuration ?? null;
  const configName = configuration === null ? null : nameOfConfig(configuration);
  const copies = listed.map((file) => ({ file, path: relative(root, file.path).replaceAll(sep, "/") }));
  if (configuration !== null && configName !== null)
    copies.push({ file: listedAs(disk, configuration), path: configName });
  for (const [index, { file, path }] of copies.entries()) {
    progress(index, copies.length);
    const copied = await copyFile(disk, file, join(folder, path));
    if (copied !== null) files.push({ path, ...copied });
  }
  const createdAt = new Date(catalog.now()).toISOString();
  const manifest: BackupManifest = { format: manifestFormat, createdAt, configuration: configName, files };
  const text = `${JSON.stringify(manifest, null, 1)}\n`;
  await replaceWhole(disk, join(folder, manifestName), Buffer.from(text), randomUUID());
  progress(copies.length, copies.length);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return { files: files.length, bytes, configuration: configName };
}

/** Returns the name under which Skein finds the configuration in a restored root folder. */
function nameOfConfig(file: string): string {
  return extname(file) === ".json" ? "skein.json" : "skein.yaml";
}

function listedAs(disk: Disk, path: string): Listed {
  const stat = disk.stat(path);
  if (stat === null)
    throw new SkeinError("not_found", {
      what: "Configuration file",
      name: path,
      advice: "Restore the file, or name a different one with --config",
    });
  return { path, size: stat.size, identity: stat.identity, elsewhere: null };
}

/** Deletes the rows and vacuums the database so that no page in the copy still contains them. */
function emptyTables(file: string, tables: readonly string[]): void {
  if (tables.length === 0) return;
  const db = new DatabaseSync(file);
  try {
    db.exec("PRAGMA journal_mode = DELETE");
    const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?");
    for (const table of tables) if (isThere.get(table) !== undefined) db.exec(`DELETE FROM "${table}"`);
    db.exec("VACUUM");
  } finally {
    db.close();
  }
}

async function describeFile(disk: Disk, folder: string, path: string): Promise<BackupFile> {
  const file = disk.openExisting(join(folder, path));
  if (file === null) throw new Error(`${path} was removed from the backup`);
  try {
    await file.sync();
    const { bytes, sha256 } = readThrough(file, file.size(), () => undefined);
    return { path, bytes, sha256 };
  } finally {
    file.close();
  }
}

function checkTarget(disk: Disk, root: string, folder: string): void {
  const problem = isWithin(root, folder)
    ? `The backup folder ${folder} is inside the folder being copied`
    : disk.list(folder).length > 0
      ? `The backup folder ${folder} is not empty`
      : null;
  if (problem === null) return;
  throw new SkeinError("invalid_arguments", {
    problem,
    advice: "Name a new folder outside the one being copied",
  });
}

/**
 * Lists logs, state, blobs, attachments, `user.json` files and the trash. Together with `work.db`, they contain
 * everything that cannot be rebuilt.
 */
function filesIn(catalog: SessionCatalog): Listed[] {
  const { disk, root } = catalog.settings;
  const found = new Map<string, Listed>();
  const take = (path: string, elsewhere: readonly string[] | null = null) => {
    const stat = disk.kind(path) === "file" ? disk.stat(path) : null;
    if (stat !== null) found.set(path, { path, size: stat.size, identity: stat.identity, elsewhere });
  };
  const takeTrash = () => {
    for (const { uid, sessionId, path } of trashIn(root, disk)) {
      const row = catalog.work.byUid(uid);
      take(path, row === null ? [] : [sessionPaths(root, row, sessionId).log]);
    }
  };
  // The list is built twice because sessions can move into and out of the trash between the two passes.
  takeTrash();
  const homes = new Set<string>();
  for (const agent of agentsIn(root, disk)) {
    homes.add(agent.home);
    for (const sessionId of sessionsIn(root, agent, disk).logs) {
      const row = catalog.work.inFolder(agent.home, agent.agentId, sessionId);
      const away = row === null ? [] : [trashedPaths(root, row.uid, sessionId).log];
      take(sessionPaths(root, agent, sessionId).log, away);
    }
    for (const part of ["context", "attachments", "blobs"])
      takeAll(disk, join(agentFolder(root, agent), part), take);
  }
  for (const home of homes) take(userFile(root, home));
  takeTrash();
  return [...found.values()];
}

function takeAll(disk: Disk, folder: string, take: (path: string) => void): void {
  for (const name of namesIn(disk, folder)) {
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    if (disk.kind(path) === "folder") takeAll(disk, path, take);
    else take(path);
  }
}

/** Returns `null` if the file has been deleted. */
async function copyFile(
  disk: Disk,
  listed: Listed,
  target: string,
): Promise<Omit<BackupFile, "path"> | null> {
  const from = openListed(disk, listed);
  if (from === null) return null;
  try {
    return await copyBytes(disk, from, sizeOf(from, listed), target);
  } finally {
    from.close();
  }
}

const chunkBytes = 1024 * 1024;

/** Copies the first `size` bytes into a new file and syncs it. */
async function copyBytes(
  disk: Disk,
  from: DiskFile,
  size: number,
  target: string,
): Promise<Omit<BackupFile, "path">> {
  await makeFolderDurably(disk, dirname(target));
  const to = disk.create(target);
  try {
    const copied = readThrough(from, size, (chunk) => appendWhole(to, chunk));
    await to.sync();
    await disk.syncFolder(dirname(target));
    return copied;
  } finally {
    to.close();
  }
}

function readThrough(
  from: DiskFile,
  size: number,
  use: (chunk: Uint8Array) => void,
): Omit<BackupFile, "path"> {
  const hash = createHash("sha256");
  let bytes = 0;
  while (bytes < size) {
    const chunk = from.read(bytes, Math.min(chunkBytes, size - bytes));
    if (chunk.length === 0) break;
    use(chunk);
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** Returns the recorded size of a log. A log that has been rewritten since it was listed is copied in full. */
function sizeOf(file: DiskFile, { size, identity, elsewhere }: Listed): number {
  const now = file.stat();
  return elsewhere !== null && now.identity === identity ? Math.min(size, now.size) : now.size;
}

/** Opens the recorded file wherever it is now, or its replacement. */
function openListed(disk: Disk, { path, identity, elsewhere }: Listed): DiskFile | null {
  const places = [path, ...(elsewhere ?? [])];
  // Looks twice because the file might move between the lookups.
  const looks = [...places, ...places];
  for (const isSame of [true, false]) {
    for (const place of looks) {
      const file = disk.kind(place) === "file" ? disk.openToRead(place) : null;
      if (file === null) continue;
      if (!isSame || file.stat().identity === identity) return file;
      file.close();
    }
  }
  return null;
}

/** Copies a database through a separate connection, which does not see uncommitted changes. */
function copyDatabase(path: string, target: string): void {
  const reader = new DatabaseSync(path, { timeout: 10_000 });
  try {
    reader.prepare("VACUUM INTO ?").run(target);
  } finally {
    reader.close();
  }
  chmodSync(target, 0o600);
}

/**
 * Creates a root folder from a backup. Files are compared with the manifest as they are copied. The folder gets its
 * final name once it is complete and durable.
 */
export async function restoreFiles(
  disk: Disk,
  backup: string,
  target: string,
  progress: Progress,
  /** Adapts the configuration to the new folder. Returns `null` to leave it unchanged. */
  configure: (text: string) => string | null = () => null,
): Promise<BackupManifest> {
  const manifest = readManifest(disk, backup);
  checkRestoreTarget(disk, backup, target);
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
  if (bytes === null) throw unusableBackup(file, "it is missing, so the backup is incomplete");
  const found = parseJson(bytes) as Partial<BackupManifest> | null | undefined;
  if (found === undefined) throw unusableBackup(file, "it is not valid JSON");
  if (found?.format !== manifestFormat || !Array.isArray(found.files))
    throw unusableBackup(file, `it is not a list of files in the ${manifestFormat} format`);
  const { files, configuration = null } = found;
  for (const each of files) checkListed(file, each, configuration);
  if (!files.some(({ path }) => path === workDbName))
    throw unusableBackup(file, `it does not list ${workDbName}`);
  return { format: manifestFormat, createdAt: String(found.createdAt), configuration, files };
}

/** A backslash is part of a name, except on Windows. */
const plainName = sep === "\\" ? /^[^.\\\0][^\\\0]*$/ : /^[^.\0][^\0]*$/;

/** Allows only known files at the top level. For example, a `token` file would give the backup's author access. */
function checkListed(manifest: string, file: Partial<BackupFile>, configuration: string | null): void {
  const { path, bytes, sha256 } = file;
  const names = typeof path === "string" ? path.split("/") : [];
  const isPlain = names.every((name) => plainName.test(name));
  const isPlaced = names.length > 1 || [workDbName, "user.json", configuration].includes(path ?? "");
  const isConfig = path !== configuration || /^skein\.(?:yaml|yml|json)$/.test(path ?? "");
  const isMeasured = Number.isSafeInteger(bytes) && typeof sha256 === "string";
  if (names.length > 0 && isPlain && isPlaced && isConfig && isMeasured) return;
  throw unusableBackup(manifest, `it lists ${JSON.stringify(path)}, which does not belong in a backup`);
}

function checkRestoreTarget(disk: Disk, backup: string, target: string): void {
  const kind = disk.kind(target);
  const problem =
    kind !== null && (kind !== "folder" || disk.list(target).length > 0)
      ? `The folder ${target} is not empty`
      : isWithin(backup, target)
        ? `The folder ${target} is inside the backup`
        : null;
  if (problem === null) return;
  const advice = "Name a new folder with --dir";
  throw new SkeinError("invalid_arguments", { problem, advice });
}

/** Replaces the folder only if it is still empty. */
function putInPlace(disk: Disk, unfinished: string, target: string): void {
  try {
    disk.rename(unfinished, target);
  } catch (error) {
    if (codeOf(error) !== "ENOTEMPTY" && codeOf(error) !== "EEXIST") throw error;
    const advice = "Name a new folder with --dir";
    throw new SkeinError("conflict", { problem: `The folder ${target} is no longer empty`, advice });
  }
}

async function restoreFile(disk: Disk, backup: string, listed: BackupFile, target: string): Promise<void> {
  const path = join(backup, listed.path);
  const from = isReachedWithoutLinks(disk, backup, listed.path) ? disk.openToRead(path) : null;
  if (from === null) throw unusableBackup(path, "it is listed in the manifest but does not exist");
  try {
    if (from.size() !== listed.bytes)
      throw unusableBackup(path, `it has ${from.size()} bytes, but had ${listed.bytes} when it was copied`);
    const { sha256 } = await copyBytes(disk, from, listed.bytes, target);
    if (sha256 !== listed.sha256) throw unusableBackup(path, "its contents do not match the manifest");
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
  const advice = "Nothing was restored. Use a different backup";
  return new SkeinError("unreadable_file", { file, problem, advice });
}
