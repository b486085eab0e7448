import { dirname, join, sep } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { readAgentId } from "../../core/names.ts";
import { checkNamespace, defaultNamespace } from "../../core/namespace.ts";
import { userIdOfSegment, userSegment } from "../../core/path-segment.ts";
import { isRecord } from "../../core/shape.ts";
import { spaceOf } from "../../core/space.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, readOwn, writeBeside } from "./disk.ts";
import type { LockSettings } from "./write-lock.ts";

/** Where everything lives under the root. Ids have been checked before they come here. */

export interface AgentPlace {
  /** The folder of the user, from the root on, with slashes; empty for the unnamed one. */
  readonly home: string;
  readonly agentId: string;
}

export interface SessionPaths {
  readonly folder: string;
  /** The working set: what the model sees. */
  readonly working: string;
  /** Everything, append-only. */
  readonly log: string;
  readonly lock: string;
}

export const workDbName = "work.db";
export const indexDbName = "index.db";
const trashName = "trash";
const logEnding = ".log.jsonl";
const workingEnding = ".jsonl";

/** Decides the folders of a user, from the root on. Each name is encoded, so any text will do. */
export type Namespace = (context: { readonly userId?: string }) => readonly string[];

/** The folder of a user, from the root on; refuses one that is another user's. */
export type HomeFor = (userId: string | null) => string;

/** A namespace that a call named is part of its user id, and decides before the store's own. */
export function homeOf(namespace: Namespace, userId: string | null): string {
  const named = spaceOf(userId).namespace;
  return checkNamespace(named ?? namespace(userId === null ? {} : { userId })).join("/");
}

export function agentFolder(root: string, { home, agentId }: AgentPlace): string {
  return join(root, home, "agents", agentId);
}

export function sessionsFolder(root: string, place: AgentPlace): string {
  return join(agentFolder(root, place), "sessions");
}

export function sessionPaths(root: string, place: AgentPlace, sessionId: string): SessionPaths {
  return pathsIn(sessionsFolder(root, place), sessionId);
}

/** In the trash each session has a folder of its own, named by its uid. */
export function trashedPaths(root: string, uid: string, sessionId: string): SessionPaths {
  return pathsIn(join(root, trashName, uid), sessionId);
}

function pathsIn(folder: string, sessionId: string): SessionPaths {
  const stem = folder + sep + sessionId;
  const working = stem + workingEnding;
  return { folder, working, log: stem + logEnding, lock: `${working}.lock` };
}

export function stateFolder(root: string, place: AgentPlace, sessionId: string): string {
  return join(agentFolder(root, place), "context", sessionId);
}

export function attachmentsFolder(root: string, place: AgentPlace, sessionId: string): string {
  return join(agentFolder(root, place), "attachments", sessionId);
}

export function blobsFolder(root: string, place: AgentPlace): string {
  return join(agentFolder(root, place), "blobs");
}

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

type Alone = Pick<LockSettings, "exclusively">;

/**
 * Whose a home is. The default ones say it by their name; any other says it in its `user.json`: `{"userId": …}`, `null`
 * for the unnamed user. `undefined`: nothing says it.
 */
export type HomeOwner = string | null | undefined;

export function userFile(root: string, home: string): string {
  return join(root, home, "user.json");
}

export function ownerOf(root: string, home: string, disk: Disk): HomeOwner {
  const said = saidIn(userFile(root, home), disk);
  const named = ownerByName(home);
  if (named !== undefined || said === null) return named;
  // Under `users` a name that is a hash must be that of whoever is written down.
  const isHash = isDefault(home);
  return isHash && (said.userId === null || home !== homeOf(defaultNamespace, said.userId))
    ? undefined
    : said.userId;
}

/** Refuses a home that is another user's: their blobs and originals would lie together. */
export function checkOwner(root: string, home: string, disk: Disk, userId: string | null): void {
  const owner = ownerOf(root, home, disk);
  if (owner !== undefined && owner !== userId) refuseShared(home);
}

function refuseShared(home: string): never {
  throw new SkeinError("conflict", {
    problem: `The namespace gives two users the folder "${home}"`,
    advice: "Let it give each user a folder of their own",
  });
}

/** Writes down whose a home is where its name does not say so, before anything else is there. */
export async function noteOwner(
  settings: { readonly root: string; readonly disk: Disk; readonly lock: Alone; newId(): string },
  home: string,
  userId: string | null,
): Promise<void> {
  const { root, disk, lock, newId } = settings;
  checkOwner(root, home, disk, userId);
  if (ownerOf(root, home, disk) !== undefined) return;
  const path = userFile(root, home);
  await makeFolderDurably(disk, dirname(path));
  const bytes = Buffer.from(`${JSON.stringify({ userId })}\n`);
  const temporary = await writeBeside(disk, path, bytes, newId(), true);
  // Two users who come at once must not each write down that it is theirs.
  const isFirst = lock.exclusively(() => {
    const isFree = saidIn(path, disk) === null;
    if (isFree) disk.rename(temporary, path);
    return isFree;
  });
  if (!isFirst) disk.unlink(temporary);
  checkOwner(root, home, disk, userId);
  await disk.syncFolder(dirname(path));
}

/** By the name of a default home alone. */
function ownerByName(home: string): HomeOwner {
  if (home === "") return null;
  if (!isDefault(home)) return undefined;
  try {
    return userIdOfSegment(home.slice(home.indexOf("/") + 1)) ?? undefined;
  } catch {
    return undefined; // a folder that we did not name
  }
}

function isDefault(home: string): boolean {
  return /^users\/[^/]+$/.test(home);
}

function saidIn(path: string, disk: Disk): { readonly userId: string | null } | null {
  const bytes = readOwn(disk, path);
  if (bytes === null) return null;
  try {
    const held: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (!isRecord(held)) return null;
    if (held.userId === null) return { userId: null };
    if (typeof held.userId !== "string") return null;
    userSegment(held.userId); // what cannot be a user id is none
    return { userId: held.userId };
  } catch {
    return null; // damaged: it says nothing
  }
}
