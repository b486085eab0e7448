import { dirname, join, relative } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import type { Progress } from "./check.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { appendWhole, makeFolderDurably } from "./disk-files.ts";
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

const chunkBytes = 1024 * 1024;

/**
 * A copy of everything that cannot be made anew, as it is at one moment: while nobody can write to `work.db`, it is
 * copied and the size of every log is noted; then the logs are copied up to those sizes, wherever they are by then.
 * State and blobs are copied whole. Links are left out. The copy is a root of its own.
 */
export async function backupFiles(
  catalogue: SessionCatalogue,
  databases: string,
  folder: string,
  progress: Progress,
): Promise<{ files: number; bytes: number }> {
  const { disk, root } = catalogue.settings;
  checkTarget(disk, root, folder);
  await makeFolderDurably(disk, folder);
  const files = catalogue.work.exclusively(() => {
    catalogue.work.copyTo(join(databases, workDbName), join(folder, workDbName));
    return filesIn(catalogue);
  });
  let bytes = 0;
  let count = 1;
  for (const [index, file] of files.entries()) {
    progress(index, files.length);
    const copied = await copyFile(disk, file, join(folder, relative(root, file.path)));
    if (copied === null) continue;
    bytes += copied;
    count += 1;
  }
  progress(files.length, files.length);
  return { files: count, bytes };
}

function checkTarget(disk: Disk, root: string, folder: string): void {
  const inside = relative(root, folder);
  const isInside = inside === "" || (!/^\.\.(\/|$)/.test(inside) && !inside.startsWith("/"));
  const problem = isInside
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

/** How many bytes; `null`: it was taken away meanwhile, on purpose. */
async function copyFile(disk: Disk, listed: Listed, target: string): Promise<number | null> {
  const from = openListed(disk, listed);
  if (from === null) return null;
  let copied = 0;
  try {
    const size = sizeOf(from, listed);
    await makeFolderDurably(disk, dirname(target));
    const to = disk.create(target);
    try {
      while (copied < size) {
        const bytes = from.read(copied, Math.min(chunkBytes, size - copied));
        if (bytes.length === 0) break;
        appendWhole(to, bytes);
        copied += bytes.length;
      }
      await to.sync();
    } finally {
      to.close();
    }
  } finally {
    from.close();
  }
  await disk.syncFolder(dirname(target));
  return copied;
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
