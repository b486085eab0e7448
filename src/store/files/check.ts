import { statfsSync } from "node:fs";
import { basename, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { isCorrupt } from "../../core/entries.ts";
import { parseSession } from "../../core/parse-session.ts";
import { adoptFile, adoptLog, lookAt } from "./adopt-file.ts";
import { readOwn } from "./disk.ts";
import type { FoundAgent } from "./layout.ts";
import {
  agentsIn,
  indexDbName,
  namesIn,
  sessionPaths,
  sessionsFolder,
  sessionsIn,
  workDbName,
} from "./layout.ts";
import type { StoreFolder } from "./rebuild.ts";
import { adoptedFrom, orProblem } from "./rebuild.ts";
import type { SessionCatalog } from "./session-catalog.ts";
import { lockState, removeIfStale } from "./write-lock.ts";

/** A problem found by a check. */
export interface CheckFinding {
  readonly area: "databases" | "logs" | "index" | "locks" | "leftovers" | "disk";
  /**
   * `note` needs no action. `warning` means that nothing is lost, but action is needed. `error` means that data is lost
   * or rejected.
   */
  readonly severity: "note" | "warning" | "error";
  readonly file: string;
  /** A sentence that describes the problem. */
  readonly what: string;
  /** The remedy, or what `--fix` does if `fixable` is set. */
  readonly remedy: string;
  readonly fixable: boolean;
  readonly fixed: boolean;
}

/** Reports the progress of a long operation. */
export type Progress = (done: number, total: number) => void;

/** A folder check and the destination for its findings. */
interface FolderCheck {
  readonly catalog: SessionCatalog;
  readonly folder: StoreFolder;
  readonly fix: boolean;
  readonly progress: Progress;
  readonly found: (finding: CheckFinding) => void;
}

/** Leftover files newer than this might still be in use. */
const leftoverMs = 60 * 60 * 1000;
const leastFreeBytes = 200 * 1024 * 1024;

/** Checks everything and, if `fix` is set, repairs what it can. */
export async function checkFiles(check: FolderCheck): Promise<void> {
  checkDisk(check);
  if (!checkDatabases(check)) return; // Without an intact `work.db`, the rest cannot be checked.
  checkAdopted(check);
  await checkFolders(check);
  await checkLogs(check);
  await checkIndex(check);
}

/** `repair` fixes the problem and returns whether it succeeded. `null` if the problem is not fixable. */
function addFinding(
  { found, fix }: FolderCheck,
  finding: Omit<CheckFinding, "fixable" | "fixed">,
  repair: (() => boolean) | null = null,
): void {
  found({ ...finding, fixable: repair !== null, fixed: repair !== null && fix && repair() });
}

/** Returns `false` if `work.db` is damaged. */
function checkDatabases(check: FolderCheck): boolean {
  const { catalog, folder } = check;
  const { databases } = catalog.settings;
  const addDatabase = (name: string, finding: Pick<CheckFinding, "severity" | "what" | "remedy">) =>
    addFinding(check, { area: "databases", file: join(databases, name), ...finding });
  const damage = catalog.work.ledger.damage ?? catalog.work.ledger.problem("integrity_check");
  if (damage !== null) {
    const remedy = "Stop every process that uses the folder, then run `skein doctor --fix`";
    addDatabase(workDbName, { severity: "error", what: `The database is damaged: ${damage}`, remedy });
    return false;
  }
  const indexDamage = catalog.index.db.problem();
  if (indexDamage !== null) {
    const remedy = "Move it elsewhere while no process has the folder open; it will be rebuilt from the logs";
    addDatabase(indexDbName, { severity: "error", what: `The database is damaged: ${indexDamage}`, remedy });
  }
  for (const { at, note } of catalog.work.losses()) {
    const what = `On ${new Date(at).toISOString()}: ${note}`;
    const remedy = "Resend lost messages and create new tokens; a backup has older data";
    addDatabase(workDbName, { severity: "note", what, remedy });
  }
  for (const name of folder.disk.list(databases).filter((each) => /\.(unreadable|damaged)-\d+$/.test(each))) {
    const what = "A damaged database was set aside";
    const remedy = "Delete it when you no longer need it";
    addDatabase(name, { severity: "note", what, remedy });
  }
  return true;
}

function checkDisk(check: FolderCheck): void {
  const { root } = check.folder;
  const { bavail, bsize } = statfsSync(root);
  const free = bavail * bsize;
  if (free > leastFreeBytes) return;
  const what = `Only ${Math.round(free / 1e6)} MB of disk space is free`;
  addFinding(check, { area: "disk", severity: "warning", file: root, what, remedy: "Free up disk space" });
}

/** Checks every agent's folder for files that belong to no session. */
async function checkFolders(check: FolderCheck): Promise<void> {
  const { folder, catalog } = check;
  const { root, disk } = folder;
  for (const agent of [...agentsIn(root, disk)]) {
    const { logs, foreign } = sessionsIn(root, agent, disk);
    for (const sessionId of logs) {
      if (catalog.work.inFolder(agent.home, agent.agentId, sessionId) !== null) continue;
      const { log } = sessionPaths(root, agent, sessionId);
      const unknown = "This log belongs to no known session";
      await checkFound(check, agent, { name: basename(log), severity: "warning", what: unknown }, () =>
        adoptLog(folder, agent, sessionId),
      );
    }
    for (const name of foreign) {
      const what = "Another program created this file here";
      await checkFound(check, agent, { name, severity: "note", what }, () => adoptFile(folder, agent, name));
    }
    checkLocksAndLeftovers(check, sessionsFolder(root, agent));
  }
}

/** Checks a session file that is missing from `work.db`. */
async function checkFound(
  { folder, fix, found }: FolderCheck,
  agent: FoundAgent,
  finding: { readonly name: string } & Pick<CheckFinding, "severity" | "what">,
  adopt: () => Promise<unknown>,
): Promise<void> {
  const { name, severity } = finding;
  const file = join(sessionsFolder(folder.root, agent), name);
  const seen = lookAt(folder, agent, name);
  if (seen === null) return;
  const why = "problem" in seen ? seen.problem : null;
  const fixed = fix && why === null && (await adopt()) !== null;
  const what = `${finding.what}${why === null ? "" : `, and it cannot be adopted: ${why}`}`;
  const remedy =
    why === null
      ? "Adopt the file as a session of this agent. The file's settings have no effect. The original file is kept next to the session"
      : "Move it elsewhere, or leave it";
  found({ area: "logs", severity, file, what, remedy, fixable: why === null, fixed });
}

function checkLocksAndLeftovers(check: FolderCheck, path: string): void {
  const { disk, lock, clock } = check.catalog.settings;
  for (const name of namesIn(disk, path)) {
    const file = join(path, name);
    if (disk.kind(file) !== "file") continue;
    if (name.endsWith(".lock") && lockState(file, lock) === "stale") {
      const what = "A process that is no longer running left its lock behind";
      const remedy = "Remove it, as the next writer would";
      const repair = () => removeIfStale(file, lock);
      addFinding(check, { area: "locks", severity: "note", file, what, remedy }, repair);
    }
    const isLeftover = /^\..*\.tmp$|\.lock\.[0-9a-f-]+$|\.lock\.wait$/.test(name);
    const age = clock.now() - (disk.stat(file)?.modifiedAt ?? clock.now());
    if (!isLeftover || age < leftoverMs) continue;
    const what = "A process that is no longer running left an unfinished file behind";
    const repair = () => disk.unlink(file);
    addFinding(check, { area: "leftovers", severity: "note", file, what, remedy: "Remove it" }, repair);
  }
}

/** Lists sessions that were adopted from files. */
function checkAdopted(check: FolderCheck): void {
  for (const row of check.catalog.work.live()) {
    const from = adoptedFrom(row);
    if (from === null) continue;
    const file = join(check.catalog.pathsOf(row).folder, from.file);
    const what = `It was adopted as ${row.key} on ${from.at}`;
    const remedy = "If you did not put the file there, remove the session";
    addFinding(check, { area: "logs", severity: "note", file, what, remedy });
  }
}

/** Checks that every claimed log exists and is readable. */
async function checkLogs(check: FolderCheck): Promise<void> {
  const { catalog, progress } = check;
  const { disk } = catalog.settings;
  const rows = catalog.work.live().filter(({ state }) => state === "live");
  for (const [index, row] of rows.entries()) {
    progress(index, rows.length);
    await nextTurn();
    const { log: file, working } = catalog.pathsOf(row);
    const isBlocked = [working, file]
      .filter((path) => checkRegular(check, path, path === working))
      .includes(file);
    if (isBlocked) continue;
    const read = orProblem(() => ({ bytes: readOwn(disk, file) }));
    if ("problem" in read) {
      const what = `The log was not checked because ${read.problem}`;
      const remedy = "Check the disk and the permissions, or restore the log from a backup";
      addFinding(check, { area: "logs", severity: "error", file, what, remedy });
      continue;
    }
    const { bytes } = read;
    if (bytes === null) {
      const remedy = "Restore it from a backup, or remove the session";
      addFinding(check, { area: "logs", severity: "error", file, what: "The log is missing", remedy });
      continue;
    }
    const session = parseSession(bytes);
    const damaged = session.lines.filter(isCorrupt).map(({ line }) => line);
    if (session.header === null) {
      const what = "The log has no header";
      const remedy = "Its entries can still be read; a backup has the header";
      addFinding(check, { area: "logs", severity: "warning", file, what, remedy });
    }
    if (damaged.length === 0) continue;
    const what = `${damaged.length} lines cannot be read (${damaged.slice(0, 5).join(", ")}${damaged.length > 5 ? ", …" : ""})`;
    const remedy = "They are skipped; a log is never rewritten";
    addFinding(check, { area: "logs", severity: "warning", file, what, remedy });
  }
  progress(rows.length, rows.length);
}

/** Reports a folder, pipe or link found in place of a session's file. Returns `true` if there is one. */
function checkRegular(check: FolderCheck, file: string, isWorking: boolean): boolean {
  const kind = check.catalog.settings.disk.kind(file);
  if (kind === null || kind === "file") return false;
  const what = kind === "folder" ? "This path is a folder, not a file" : "This is not a regular file";
  const then = isWorking
    ? "the next request rebuilds it from the log"
    : "then restore the file from a backup";
  const remedy = `Move it elsewhere; ${then}`;
  addFinding(check, { area: "logs", severity: "error", file, what, remedy });
  return true;
}

/** Compares the index with the logs. Sessions marked for indexing are skipped. */
async function checkIndex(check: FolderCheck): Promise<void> {
  const { catalog, fix, progress } = check;
  const { databases, disk } = catalog.settings;
  const file = join(databases, indexDbName);
  const marked = new Set(catalog.work.dirty());
  const behind = catalog.work.live().filter((row) => {
    const log = disk.stat(catalog.pathsOf(row).log);
    return log !== null && catalog.index.knownBytes(row.uid)?.logBytes !== log.size;
  });
  const unmarked = behind.filter(({ uid }) => !marked.has(uid));
  if (unmarked.length > 0) {
    const what = `The index has missed changes in ${unmarked.length} logs`;
    const repair = () => {
      for (const { uid } of unmarked) catalog.work.markDirty(uid);
      return true;
    };
    addFinding(check, { area: "index", severity: "warning", file, what, remedy: "Index them again" }, repair);
  }
  const waiting = behind.length - unmarked.length;
  if (waiting > 0) {
    const what = `The index is behind for ${waiting} sessions`;
    const remedy = "Listing and searching update it; --fix updates it now";
    addFinding(check, { area: "index", severity: "note", file, what, remedy }, () => true);
  }
  if (fix) await catalog.feed.indexAll(progress);
}
