import { createHash, randomUUID } from "node:crypto";
import { chmodSync } from "node:fs";
import { dirname, extname, join, relative, sep } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import type { Progress } from "./check.ts";
import { DatabaseSync } from "./database.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { appendWhole, makeFolderDurably, replaceWhole } from "./disk-files.ts";
import { agentsIn, namesIn, sessionsIn, trashIn } from "./folders.ts";
import { userFile } from "./home-owner.ts";
import { agentFolder, sessionPaths, trashedPaths, workDbName } from "./layout.ts";

/** A file as it was when the backup began. */
interface Listed {
  readonly path: string;
  readonly size: number;
  readonly identity: string;
  /** Of a log: where else it is when it was moved to the trash meanwhile, or out of it. `null`: it is no log. */
  readonly elsewhere: readonly string[] | null;
}

/** The list of files of a backup, written last: a backup without one was cut off. */
export const manifestName = "backup.json";
export const manifestFormat = "skein-backup-1";

export interface BackupFile {
  /** From the backup on, with slashes. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface BackupManifest {
  readonly format: typeof manifestFormat;
  readonly createdAt: string;
  /** The configuration file among the files; `null`: there was none. */
  readonly configuration: string | null;
  readonly files: readonly BackupFile[];
}

/** What a backup holds beside the folder itself, and what it does not. */
export interface BackupOptions {
  /** A configuration file, copied as `skein.yaml` or `skein.json` of the backup. */
  readonly configuration?: string;
  /** Tables of `work.db` whose rows are left out. */
  readonly emptyTables?: readonly string[];
}

export interface BackupDone {
  readonly files: number;
  readonly bytes: number;
  /** The name of the configuration file in the backup; `null`: it has none. */
  readonly configuration: string | null;
}

/** Whether `inner` is `outer` or lies in it. */
export function isWithin(outer: string, inner: string): boolean {
  const between = relative(outer, inner);
  return between === "" || (between !== ".." && !between.startsWith(`..${sep}`) && !between.startsWith(sep));
}

/**
 * A copy of everything that cannot be made anew, as it is at one moment: while nobody can write to `work.db`, it is
 * copied and the size of every log is noted; then the logs are copied up to those sizes, wherever they are by then.
 * State and blobs are copied whole. Links are left out. The copy is a root of its own, with a list of its files.
 */
export async function backupFiles(
  catalogue: SessionCatalogue,
  databases: string,
  folder: string,
  progress: Progress,
  options: BackupOptions = {},
): Promise<BackupDone> {
  const { disk, root } = catalogue.settings;
  checkTarget(disk, root, folder);
  await makeFolderDurably(disk, folder);
  const listed = catalogue.work.exclusively(() => {
    copyDatabase(join(databases, workDbName), join(folder, workDbName));
    return filesIn(catalogue);
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
  const createdAt = new Date(catalogue.now()).toISOString();
  const manifest: BackupManifest = { format: manifestFormat, createdAt, configuration: configName, files };
  const text = `${JSON.stringify(manifest, null, 1)}\n`;
  await replaceWhole(disk, join(folder, manifestName), Buffer.from(text), randomUUID());
  progress(copies.length, copies.length);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  return { files: files.length, bytes, configuration: configName };
}

/** The name under which a restored root folder finds it. */
function nameOfConfig(file: string): string {
  return extname(file) === ".json" ? "skein.json" : "skein.yaml";
}

function listedAs(disk: Disk, path: string): Listed {
  const stat = disk.stat(path);
  if (stat === null)
    throw new SkeinError("not_found", {
      what: "Configuration file",
      name: path,
      advice: "Put it back, or name another with --config",
    });
  return { path, size: stat.size, identity: stat.identity, elsewhere: null };
}

/** Takes the rows out of a copy so that no page of it still has them. */
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
  if (file === null) throw new Error(`${path} was taken out of the backup`);
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
    ? `The backup folder ${folder} is inside of what is to be copied`
    : disk.list(folder).length > 0
      ? `The backup folder ${folder} is not empty`
      : null;
  if (problem === null) return;
  throw new SkeinError("invalid_arguments", { problem, advice: "Name a new folder elsewhere" });
}

/** Logs, state, blobs, attachments, the trash. Working sets, listings and the index are made from these. */
function filesIn(catalogue: SessionCatalogue): Listed[] {
  const { disk, root } = catalogue.settings;
  const found = new Map<string, Listed>();
  const take = (path: string, elsewhere: readonly string[] | null = null) => {
    const stat = disk.kind(path) === "file" ? disk.stat(path) : null;
    if (stat !== null) found.set(path, { path, size: stat.size, identity: stat.identity, elsewhere });
  };
  const takeTrash = () => {
    for (const { uid, sessionId, path } of trashIn(root, disk)) {
      const row = catalogue.work.byUid(uid);
      take(path, row === null ? [] : [sessionPaths(root, row, sessionId).log]);
    }
  };
  // Twice, for files are moved while we look: into the trash behind us, or out of it.
  takeTrash();
  const homes = new Set<string>();
  for (const agent of agentsIn(root, disk)) {
    homes.add(agent.home);
    for (const sessionId of sessionsIn(root, agent, disk).logs) {
      const row = catalogue.work.inFolder(agent.home, agent.agentId, sessionId);
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

/** `null`: it was taken away meanwhile, on purpose. */
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

/** Copies the beginning of a file into a new one, durably. */
export async function copyBytes(
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

/** A log as far as it was; one that was written anew since, all of it, for its parts are at other places now. */
function sizeOf(file: DiskFile, { size, identity, elsewhere }: Listed): number {
  const now = file.stat();
  return elsewhere !== null && now.identity === identity ? Math.min(size, now.size) : now.size;
}

/** The file that was listed, wherever it is now; else whatever has taken its place. */
function openListed(disk: Disk, { path, identity, elsewhere }: Listed): DiskFile | null {
  const places = [path, ...(elsewhere ?? [])];
  // Again, for it may move from one place to the other while we look.
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

/** Copies a database into a new file. It reads through a connection of its own, which does not see a transaction under way. */
function copyDatabase(path: string, target: string): void {
  const reader = new DatabaseSync(path, { timeout: 10_000 });
  try {
    reader.prepare("VACUUM INTO ?").run(target);
  } finally {
    reader.close();
  }
  chmodSync(target, 0o600);
}
