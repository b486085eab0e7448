import { dirname, join, relative } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import type { SessionCatalogue } from "./catalogue.ts";
import type { Progress } from "./check.ts";
import type { Disk } from "./disk.ts";
import { appendWhole, makeFolderDurably } from "./disk-files.ts";
import { agentsIn, trashIn } from "./folders.ts";
import { userFile } from "./home-owner.ts";
import { agentFolder, logEnding, workDbName } from "./layout.ts";

/** What is copied of a file: as much as was there when the backup began. */
interface Copied {
  readonly path: string;
  readonly size: number;
}

const chunkBytes = 1024 * 1024;

/**
 * A copy of everything that cannot be made anew, as it is at one moment: while nobody can write to `work.db`, it is
 * copied and the size of every log is noted; then the logs are copied up to those sizes. The copy is a root of its own.
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
    return filesIn(root, disk);
  });
  let bytes = 0;
  for (const [index, file] of files.entries()) {
    progress(index, files.length);
    bytes += await copyFile(disk, file, join(folder, relative(root, file.path)));
  }
  progress(files.length, files.length);
  return { files: files.length + 1, bytes };
}

function checkTarget(disk: Disk, root: string, folder: string): void {
  const inside = relative(root, folder);
  const isInside = inside === "" || (!inside.startsWith("..") && !inside.startsWith("/"));
  const problem = isInside
    ? `The backup folder ${folder} is inside of what is to be copied`
    : disk.list(folder).length > 0
      ? `The backup folder ${folder} is not empty`
      : null;
  if (problem === null) return;
  throw new SkeinError("invalid_arguments", { problem, advice: "Name a new folder elsewhere" });
}

/** Logs, state, blobs, attachments, the trash. Working sets, listings and the index are made from these. */
function filesIn(root: string, disk: Disk): Copied[] {
  const found: Copied[] = [];
  const take = (path: string) => {
    const stat = disk.stat(path);
    if (stat !== null) found.push({ path, size: stat.size });
  };
  const homes = new Set<string>();
  for (const agent of agentsIn(root, disk)) {
    homes.add(agent.home);
    const folder = agentFolder(root, agent);
    for (const name of disk.list(join(folder, "sessions"))) {
      if (name.endsWith(logEnding) && !name.startsWith(".")) take(join(folder, "sessions", name));
    }
    for (const part of ["context", "attachments", "blobs"]) takeAll(disk, join(folder, part), take);
  }
  for (const home of homes) {
    take(userFile(root, home));
  }
  for (const { path } of trashIn(root, disk)) take(path);
  return found;
}

function takeAll(disk: Disk, folder: string, take: (path: string) => void): void {
  for (const name of disk.list(folder)) {
    if (name.startsWith(".")) continue;
    const path = join(folder, name);
    if (disk.isFolder(path)) takeAll(disk, path, take);
    else take(path);
  }
}

async function copyFile(disk: Disk, { path, size }: Copied, target: string): Promise<number> {
  const from = disk.openExisting(path);
  if (from === null) return 0; // taken away meanwhile, on purpose
  await makeFolderDurably(disk, dirname(target));
  const to = disk.create(target);
  try {
    for (let at = 0; at < size; at += chunkBytes) {
      appendWhole(to, from.read(at, Math.min(chunkBytes, size - at)));
    }
    await to.sync();
  } finally {
    from.close();
    to.close();
  }
  await disk.syncFolder(dirname(target));
  return size;
}
