import { dirname, join, sep } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { readAgentId } from "../../core/names.ts";
import { checkNamespace, defaultNamespace } from "../../core/namespace.ts";
import { userIdOfSegment, userSegment } from "../../core/path-segment.ts";
import { spaceOf } from "../../core/space.ts";
import type { Disk } from "./disk.ts";
import { makeFolderDurably, parseJson, readOwn, writeTemporary } from "./disk.ts";
import type { LockSettings } from "./write-lock.ts";

/** Paths under the root. IDs have already been validated. */

export interface AgentPlace {
  /** The user's folder relative to the root, with slashes. Empty for the unnamed user. */
  readonly home: string;
  readonly agentId: string;
}

export interface SessionPaths {
  readonly folder: string;
  /** The working set, which contains what the model sees. */
  readonly working: string;
  /** The complete, append-only log. */
  readonly log: string;
  readonly lock: string;
}

export const workDbName = "work.db";
export const indexDbName = "index.db";
const trashName = "trash";
const logEnding = ".log.jsonl";
const workingEnding = ".jsonl";

/** Chooses a user's folders, relative to the root. Names are encoded, so they can contain any characters. */
export type Namespace = (context: { readonly userId?: string }) => readonly string[];

/** Returns a user's folder, relative to the root. Rejects another user's folder. */
export type HomeFor = (userId: string | null) => string;

/**
 * Returns a user's folder, relative to the root. If the caller chose a namespace, it is part of the user ID and
 * overrides `namespace`.
 */
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

/** Returns the paths of a session in the trash, where each session has a folder named after its uid. */
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

/** Maximum nesting depth of homes. */
const deepestHome = 8;
/** Matches the names that `writeTemporary` uses. */
const temporaryName = /^\..+\.tmp$/;
const copyEnding = /^(\.orig|\.bak-\d+-\d+)$/;

/** An agent's folder and its user. */
export interface FoundAgent extends AgentPlace {
  readonly userId: HomeOwner;
}

/** Lists names without following links, because links can lead outside the store. */
export function namesIn(disk: Disk, folder: string): string[] {
  return disk.kind(folder) === "folder" ? disk.list(folder) : [];
}

/** Yields all agents' folders under a root. */
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

/** Homes under `users` contain no other homes. A folder named `node_modules` is a home only if it has a `user.json`. */
function mayHoldHomes(root: string, home: string, name: string, disk: Disk): boolean {
  if (home === "users") return true;
  if (home.startsWith("users/")) return false;
  return (
    name !== "node_modules" || disk.stat(userFile(root, home === "" ? name : `${home}/${name}`)) !== null
  );
}

/** Returns the session files in an agent's folder: those with a log, and files from other programs. */
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
  // A working set is not a file from another program, even if a folder is in place of its log.
  const known = new Set(idsOfLogs(there));
  const foreign = names
    .filter((name) => !name.endsWith(logEnding))
    .filter((name) => !known.has(name.slice(0, -workingEnding.length)));
  return { logs, foreign };
}

/**
 * Lists copies that are stored next to a session's files: the original of an adopted session, and backups made by
 * repairs.
 */
export function listCopies({ folder, log, working }: SessionPaths, disk: Disk): string[] {
  return disk
    .list(folder)
    .map((name) => join(folder, name))
    .filter((path) =>
      [log, working].some((own) => path.startsWith(own) && copyEnding.test(path.slice(own.length))),
    );
}

/** A temporary file that is in use is written continuously, so an older one is stale. */
const staleMs = 60_000;

/** Removes temporary files left by dead processes. */
export function removeLeftovers(disk: Disk, folder: string, now: number): void {
  for (const name of namesIn(disk, folder)) {
    const path = join(folder, name);
    if (!temporaryName.test(name) || disk.kind(path) !== "file") continue;
    const stat = disk.stat(path);
    if (stat !== null && now - stat.modifiedAt > staleMs) disk.unlink(path);
  }
}

/** Yields the logs in the trash, which has one folder per uid. */
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

/**
 * The owner of a home. For default homes, the name determines the owner. For other homes, it is `{"userId": …}` in
 * `user.json`, where `null` is the unnamed user. `undefined` if unknown.
 */
export type HomeOwner = string | null | undefined;

export function userFile(root: string, home: string): string {
  return join(root, home, "user.json");
}

export function ownerOf(root: string, home: string, disk: Disk): HomeOwner {
  const recorded = readUserFile(userFile(root, home), disk);
  const named = ownerByName(home);
  if (named !== undefined || recorded === null) return named;
  // A hashed name must match the user in `user.json`.
  const { userId } = recorded;
  const isMismatch = isDefault(home) && (userId === null || home !== homeOf(defaultNamespace, userId));
  return isMismatch ? undefined : userId;
}

/** Rejects another user's home so that the blobs and originals of two users are never mixed. */
export function checkOwner(root: string, home: string, disk: Disk, userId: string | null): void {
  const owner = ownerOf(root, home, disk);
  if (owner !== undefined && owner !== userId) refuseShared(home);
}

function refuseShared(home: string): never {
  throw new SkeinError("conflict", {
    problem: `The namespace returns the folder "${home}" for two users`,
    advice: "Return a separate folder for each user",
  });
}

/** Writes `user.json` if the home's name does not identify its owner, before anything else is created there. */
export async function writeOwner(
  settings: {
    readonly root: string;
    readonly disk: Disk;
    readonly lock: Pick<LockSettings, "exclusively">;
    newId(): string;
  },
  home: string,
  userId: string | null,
): Promise<void> {
  const { root, disk, lock, newId } = settings;
  checkOwner(root, home, disk, userId);
  if (ownerOf(root, home, disk) !== undefined) return;
  const path = userFile(root, home);
  await makeFolderDurably(disk, dirname(path));
  const bytes = Buffer.from(`${JSON.stringify({ userId })}\n`);
  const temporary = await writeTemporary(disk, path, [bytes], newId(), true);
  // Two users must not claim the folder concurrently.
  const isFirst = lock.exclusively(() => {
    const isFree = readUserFile(path, disk) === null;
    if (isFree) disk.rename(temporary, path);
    return isFree;
  });
  if (!isFirst) disk.unlink(temporary);
  checkOwner(root, home, disk, userId);
  await disk.syncFolder(dirname(path));
}

function ownerByName(home: string): HomeOwner {
  if (home === "") return null;
  if (!isDefault(home)) return undefined;
  try {
    return userIdOfSegment(home.slice(home.indexOf("/") + 1)) ?? undefined;
  } catch {
    return undefined; // Skein did not name this folder.
  }
}

function isDefault(home: string): boolean {
  return /^users\/[^/]+$/.test(home);
}

/** Returns `null` if the file is missing, damaged, or has an invalid user ID. */
function readUserFile(path: string, disk: Disk): { readonly userId: string | null } | null {
  const bytes = readOwn(disk, path);
  const saved = bytes === null ? null : parseJson(bytes);
  if (!isRecord(saved)) return null;
  const { userId } = saved;
  if (userId === null) return { userId };
  return isUserId(userId) ? { userId } : null;
}

export function isUserId(user: unknown): user is string {
  try {
    return typeof user === "string" && userSegment(user) !== "";
  } catch (error) {
    if (error instanceof SkeinError) return false;
    throw error;
  }
}
