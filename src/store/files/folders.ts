import { join } from "node:path";
import { readAgentId } from "../../core/names.ts";
import type { Disk } from "./disk.ts";
import type { HomeOwner } from "./home-owner.ts";
import { ownerOf, userFile } from "./home-owner.ts";
import type { AgentPlace, SessionPaths } from "./layout.ts";
import { logEnding, sessionsFolder, trashName, workingEnding } from "./layout.ts";

/**
 * What lies in the folders, for those who cannot ask the databases. Links are not followed: what is behind them is not
 * ours.
 */

/** Homes are no deeper than this. */
const deepestHome = 8;
/** As `replaceWhole` names them. */
const temporaryName = /^\..+\.tmp$/;
const copyEnding = /^(\.orig|\.bak-\d+-\d+)$/;

/** The folder of an agent that has sessions, and whose it is. */
export interface FoundAgent extends AgentPlace {
  readonly userId: HomeOwner;
}

/** Names in a folder that is one itself. */
export function namesIn(disk: Disk, folder: string): string[] {
  return disk.kind(folder) === "folder" ? disk.list(folder) : [];
}

/** Every agent's folder under a root. */
export function* agentsIn(root: string, disk: Disk, home = "", depth = 0): Generator<FoundAgent> {
  for (const name of disk.list(join(root, home))) {
    const below = home === "" ? name : `${home}/${name}`;
    if (name.startsWith(".") || below === trashName || disk.kind(join(root, below)) !== "folder") continue;
    if (name === "agents" && home !== "users") {
      const userId = ownerOf(root, home, disk);
      for (const agentId of disk.list(join(root, below))) {
        const isAgent =
          readAgentId(agentId) === agentId && disk.kind(join(root, below, agentId)) === "folder";
        if (isAgent) yield { home, agentId, userId };
      }
    } else if (mayHoldHomes(root, home, name, disk) && depth < deepestHome) {
      yield* agentsIn(root, disk, below, depth + 1);
    }
  }
}

/** Homes under `users` have no homes in them; elsewhere a `node_modules` is only one if somebody wrote down whose. */
function mayHoldHomes(root: string, home: string, name: string, disk: Disk): boolean {
  if (home === "users") return true;
  if (home.startsWith("users/")) return false;
  return (
    name !== "node_modules" || disk.stat(userFile(root, home === "" ? name : `${home}/${name}`)) !== null
  );
}

/** Session ids by the files of an agent's folder: those with a log, and files that somebody else put there. */
export function sessionsIn(
  root: string,
  place: AgentPlace,
  disk: Disk,
): { readonly logs: readonly string[]; readonly foreign: readonly string[] } {
  const folder = sessionsFolder(root, place);
  const there = namesIn(disk, folder);
  const names = there.filter(
    (name) =>
      name.endsWith(workingEnding) && !name.startsWith(".") && disk.kind(join(folder, name)) === "file",
  );
  const idsOfLogs = (all: readonly string[]) =>
    all.filter((name) => name.endsWith(logEnding)).map((name) => name.slice(0, -logEnding.length));
  const logs = idsOfLogs(names);
  // A folder in the place of a log does not turn the working set beside it into a file of another program.
  const known = new Set(idsOfLogs(there));
  const foreign = names
    .filter((name) => !name.endsWith(logEnding))
    .filter((name) => !known.has(name.slice(0, -workingEnding.length)));
  return { logs, foreign };
}

/** Copies of a session that lie beside its files: the original of an adopted one, and what repairs kept. */
export function copiesBeside({ folder, log, working }: SessionPaths, disk: Disk): string[] {
  return disk
    .list(folder)
    .map((name) => join(folder, name))
    .filter((path) =>
      [log, working].some((own) => path.startsWith(own) && copyEnding.test(path.slice(own.length))),
    );
}

/** A file that is being put in place is written to all the time. */
const staleMs = 60_000;

/** Removes what processes that died had begun to put in place in a folder. */
export function removeLeftovers(disk: Disk, folder: string, now: number): void {
  for (const name of namesIn(disk, folder)) {
    const path = join(folder, name);
    if (!temporaryName.test(name) || disk.kind(path) !== "file") continue;
    const stat = disk.stat(path);
    if (stat !== null && now - stat.modifiedAt > staleMs) disk.unlink(path);
  }
}

/** What is in the trash: a folder for each uid, a log in it. */
export function* trashIn(
  root: string,
  disk: Disk,
): Generator<{ uid: string; sessionId: string; path: string }> {
  for (const uid of namesIn(disk, join(root, trashName))) {
    const folder = join(root, trashName, uid);
    for (const name of namesIn(disk, folder)) {
      if (!name.endsWith(logEnding) || name.startsWith(".")) continue;
      if (disk.kind(join(folder, name)) !== "file") continue;
      yield { uid, sessionId: name.slice(0, -logEnding.length), path: join(folder, name) };
    }
  }
}
