import { join } from "node:path";
import { readAgentId } from "../../core/names.ts";
import { userIdOfSegment } from "../../core/path-segment.ts";
import { isRecord } from "../../core/shape.ts";
import type { Disk } from "./disk.ts";
import { readWhole } from "./disk-files.ts";
import type { AgentPlace, SessionPaths } from "./layout.ts";
import { logEnding, sessionsFolder, trashName, workingEnding } from "./layout.ts";

/** What lies in the folders, for those who cannot ask the databases. */

/** Homes are no deeper than this. */
const deepestHome = 8;
const copyEnding = /^(\.orig|\.bak-\d+-\d+)$/;

/** The folder of an agent that has sessions, and whose it is as far as the folder's name says. */
export interface FoundAgent extends AgentPlace {
  readonly userId: string | null;
}

/** Every agent's folder under a root. */
export function* agentsIn(root: string, disk: Disk, home = "", depth = 0): Generator<FoundAgent> {
  for (const name of disk.list(join(root, home))) {
    if (name.startsWith(".") || name === "node_modules" || (depth === 0 && name === trashName)) continue;
    if (name === "agents") {
      const userId = userOf(root, home, disk);
      for (const agentId of disk.list(join(root, home, name))) {
        if (readAgentId(agentId) === agentId) yield { home, agentId, userId };
      }
    } else if (depth < deepestHome && disk.isFolder(join(root, home, name))) {
      yield* agentsIn(root, disk, home === "" ? name : `${home}/${name}`, depth + 1);
    }
  }
}

/** Session ids by the files of an agent's folder: those with a log, and files that somebody else put there. */
export function sessionsIn(
  root: string,
  place: AgentPlace,
  disk: Disk,
): { readonly logs: readonly string[]; readonly foreign: readonly string[] } {
  const names = disk.list(sessionsFolder(root, place)).filter((name) => !name.startsWith("."));
  const logs = names
    .filter((name) => name.endsWith(logEnding))
    .map((name) => name.slice(0, -logEnding.length));
  const known = new Set(logs);
  const foreign = names
    .filter((name) => name.endsWith(workingEnding) && !name.endsWith(logEnding))
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

/** What is in the trash: a folder for each uid, a log in it. */
export function* trashIn(
  root: string,
  disk: Disk,
): Generator<{ uid: string; sessionId: string; path: string }> {
  for (const uid of disk.list(join(root, trashName))) {
    const folder = join(root, trashName, uid);
    for (const name of disk.list(folder)) {
      if (!name.endsWith(logEnding) || name.startsWith(".")) continue;
      yield { uid, sessionId: name.slice(0, -logEnding.length), path: join(folder, name) };
    }
  }
}

/** Whose home it is: its last folder's name, or what `user.json` says where that is a hash. */
function userOf(root: string, home: string, disk: Disk): string | null {
  if (home === "") return null;
  const segment = home.slice(home.lastIndexOf("/") + 1);
  try {
    return userIdOfSegment(segment) ?? userNamedIn(join(root, home), disk);
  } catch {
    return null; // a folder that we did not name: only its logs can say whose it is
  }
}

function userNamedIn(folder: string, disk: Disk): string | null {
  const bytes = readWhole(disk, join(folder, "user.json"));
  const held: unknown = bytes === null ? null : JSON.parse(Buffer.from(bytes).toString("utf8"));
  return isRecord(held) && typeof held.userId === "string" ? held.userId : null;
}
