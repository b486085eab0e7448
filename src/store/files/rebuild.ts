import type { SessionHeader } from "../../core/entries.ts";
import { codeOf, SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { formatKey, readKey } from "../../core/keys.ts";
import { readAgentId, sessionIdProblem } from "../../core/names.ts";
import { parseSession } from "../../core/parse-session.ts";
import { SessionTree } from "../../core/tree.ts";
import type { SessionMeta } from "../contract.ts";
import { metaOf } from "../session-meta.ts";
import type { Disk } from "./disk.ts";
import { readOwn } from "./disk.ts";
import type { FoundAgent, HomeOwner, Namespace } from "./layout.ts";
import { agentsIn, homeOf, isUserId, sessionPaths, sessionsIn, trashIn } from "./layout.ts";
import type { Recovery } from "./recover.ts";
import type { SessionRow, WorkDb } from "./work-db.ts";
import type { LockSettings } from "./write-lock.ts";

/** A session folder and its `work.db`. */
export interface StoreFolder {
  readonly root: string;
  readonly disk: Disk;
  readonly work: WorkDb;
  readonly namespace: Namespace;
  readonly report: (found: Recovery) => void;
  readonly lock: LockSettings;
  newId(): string;
  /** Returns the default working directory of a user's agent. */
  cwdFor(place: { readonly userId: string | null; readonly agentId: string }): string;
}

/** The format of Skein's own IDs. A uid becomes a folder name, so no other format is accepted from a file. */
const ownId = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Rebuilds the claims from the logs after `work.db` has been lost. Returns the number of claims. Queued work is lost.
 * Conversations are not.
 */
export function rebuildClaims(folder: StoreFolder): number {
  const { root, disk, work } = folder;
  let count = 0;
  for (const agent of agentsIn(root, disk)) {
    for (const sessionId of sessionsIn(root, agent, disk).logs) {
      const path = sessionPaths(root, agent, sessionId).log;
      // An interrupted start has already claimed it.
      if (work.inFolder(agent.home, agent.agentId, sessionId) !== null) continue;
      if (claimLog(folder, path, { ...agent, sessionId }) !== null) count += 1;
    }
  }
  for (const { uid, sessionId, path } of trashIn(root, disk)) {
    if (work.byUid(uid) === null && claimTrash(folder, path, uid, sessionId) !== null) count += 1;
  }
  return count;
}

/** Claims a log that was listed in the lost `work.db`. Returns `null` if its session or owner cannot be determined. */
function claimLog(
  folder: StoreFolder,
  path: string,
  found: FoundAgent & { readonly sessionId: string },
): SessionRow | null {
  const row = rowOfLog(folder, path, found);
  return "problem" in row ? reportNotAdopted(folder, path, row.problem) : claimFreeNames(folder, row, path);
}

function rowOfLog(
  folder: StoreFolder,
  path: string,
  found: FoundAgent & { readonly sessionId: string },
): SessionRow | { readonly problem: string } {
  const { agentId, sessionId, home } = found;
  const problem = sessionIdProblem(sessionId);
  if (problem !== null) return { problem: `its name is not a session ID: ${problem}` };
  const read = readLog(folder, path);
  if ("problem" in read) return read;
  const { header, meta, key } = read;
  const whose = userFrom(header, found.userId);
  if ("problem" in whose) return whose;
  const { userId } = whose;
  const named = keyOf(key ?? header.skein?.key, agentId) ?? `agent:${agentId}:session:${sessionId}`;
  return { ...baseRow(folder, header, meta), userId, agentId, home, sessionId, key: named };
}

/**
 * Returns the owner of a file. The folder and the header must not contradict each other. A file that was written by
 * Skein and does not name a user belongs to the unnamed user.
 */
export function userFrom(
  { skein }: Pick<SessionHeader, "skein">,
  owner: HomeOwner,
): { readonly userId: string | null } | { readonly problem: string } {
  const user = skein?.user;
  if (user !== undefined && !isUserId(user)) return { problem: "its header names an invalid user" };
  if (user !== undefined && owner !== undefined && user !== owner)
    return { problem: "its header names a user other than the one whose folder it is in" };
  const userId = user ?? owner;
  if (userId !== undefined) return { userId };
  return isOwnId(skein?.uid)
    ? { userId: null }
    : { problem: "neither its folder nor its header names its user" };
}

function isOwnId(uid: unknown): uid is string {
  return typeof uid === "string" && ownId.test(uid);
}

function reportNotAdopted({ report }: StoreFolder, file: string, note: string): null {
  report({ kind: "not_taken_in", file, note });
  return null;
}

function claimTrash(folder: StoreFolder, path: string, uid: string, sessionId: string): SessionRow | null {
  const problem = sessionIdProblem(sessionId);
  if (problem !== null) return reportNotAdopted(folder, path, `its name is not a session ID: ${problem}`);
  if (!isOwnId(uid)) return reportNotAdopted(folder, path, "its folder's name is not a valid Skein ID");
  const read = readLog(folder, path);
  if ("problem" in read) return reportNotAdopted(folder, path, read.problem);
  const { header, meta, key } = read;
  const agentId = agentOf(header.skein?.agent, key ?? header.skein?.key);
  if (agentId === null) return reportNotAdopted(folder, path, "it does not state which agent it belongs to");
  const whose = userFrom(header, undefined);
  if ("problem" in whose) return reportNotAdopted(folder, path, whose.problem);
  const { userId } = whose;
  const named = keyOf(key ?? header.skein?.key, agentId);
  const row: SessionRow = {
    ...baseRow(folder, header, meta),
    uid,
    userId,
    agentId,
    home: homeOf(folder.namespace, userId),
    sessionId,
    key: named ?? `agent:${agentId}:session:${sessionId}`,
    state: "trashed",
    removedAt: folder.disk.stat(path)?.modifiedAt ?? 0,
  };
  return claimFreeNames(folder, row, path);
}

function readLog(
  folder: StoreFolder,
  path: string,
): { header: SessionHeader; meta: SessionMeta; key: string | null } | { problem: string } {
  const read = orProblem(() => ({ bytes: readOwn(folder.disk, path) }));
  if ("problem" in read) return read;
  const session = parseSession(read.bytes ?? new Uint8Array(0));
  const { header } = session;
  if (header === null) return { problem: "it has no header that states which session it is" };
  return { header, ...metaOf(header, SessionTree.from(session).entries()) };
}

/** A file that the disk cannot read must not prevent the store from opening. */
export function orProblem<T>(read: () => T): T | { readonly problem: string } {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === "") throw error;
    return { problem: `it cannot be read: ${(error as Error).message}` };
  }
}

function baseRow(
  { newId }: StoreFolder,
  header: SessionHeader,
  meta: SessionMeta,
): Omit<SessionRow, "userId" | "agentId" | "home" | "sessionId" | "key"> {
  const uid = header.skein?.uid;
  const parent = header.parentSession === undefined ? {} : { parentSession: header.parentSession };
  const first = isRecord(header.skein?.meta) ? (header.skein.meta as SessionMeta) : {};
  return {
    uid: isOwnId(uid) ? uid : newId(),
    label: meta.label ?? null,
    createdAt: Date.parse(header.timestamp ?? "") || 0,
    state: "live",
    first: { cwd: header.cwd ?? "", meta: first, ...parent },
    removedAt: null,
    todo: null,
  };
}

/** If two logs claim the same key or label, the first one gets it. The other one gets a new key. */
export function claimFreeNames(
  { work, report }: StoreFolder,
  row: SessionRow,
  file: string,
): SessionRow | null {
  const own = { ...row, key: `agent:${row.agentId}:session:${row.sessionId}`, label: null };
  for (const each of [row, { ...row, label: null }, own, { ...own, key: `${own.key}:${row.uid}` }]) {
    try {
      work.claim(each);
      if (each !== row)
        report({ kind: "claim_changed", file, note: `its key or label is taken; it is now ${each.key}` });
      return each;
    } catch (error) {
      if (!(error instanceof SkeinError) || error.code !== "conflict") throw error;
    }
  }
  report({ kind: "not_taken_in", file, note: "another session already has its ID" });
  return null;
}

/** Returns the canonical key, or `null` if it is invalid or belongs to another agent. */
function keyOf(key: unknown, agentId: string): string | null {
  if (typeof key !== "string") return null;
  const parsed = readKey(key);
  if ("problem" in parsed) return null;
  return "agentId" in parsed && parsed.agentId !== agentId ? null : formatKey(parsed);
}

/** Reads the agent from the header or, if it is not there, from the key. */
function agentOf(agent: unknown, key: unknown): string | null {
  if (agent !== undefined) return typeof agent === "string" && readAgentId(agent) === agent ? agent : null;
  const parsed = typeof key === "string" ? readKey(key) : { problem: "" };
  return "agentId" in parsed ? parsed.agentId : null;
}

/** Returns the file that a session was adopted from, or `null` if it was not adopted. */
export function adoptedFrom({ first }: SessionRow): { readonly file: string; readonly at: string } | null {
  const { importedFrom } = first.meta;
  const { file, adoptedAt } = isRecord(importedFrom) ? importedFrom : {};
  return typeof file === "string" && typeof adoptedAt === "string" ? { file, at: adoptedAt } : null;
}
