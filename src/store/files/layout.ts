import { join } from "node:path";
import { userSegment } from "../../core/path-segment.ts";

/** Where everything lives under the root. Ids have been checked before they come here. */

export interface AgentPlace {
  readonly userId: string | null;
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

export function userFolder(root: string, userId: string | null): string {
  return userId === null ? root : join(root, "users", userSegment(userId));
}

/** Where the id of a user stands whose folder name is a hash; `null` for names that can be read back. */
export function userFile(root: string, userId: string | null): string | null {
  const isHashed = userId !== null && userSegment(userId).startsWith("~");
  return isHashed ? join(userFolder(root, userId), "user.json") : null;
}

export function agentFolder(root: string, { userId, agentId }: AgentPlace): string {
  return join(userFolder(root, userId), "agents", agentId);
}

export function sessionPaths(root: string, place: AgentPlace, sessionId: string): SessionPaths {
  return pathsIn(join(agentFolder(root, place), "sessions"), sessionId);
}

/** In the trash each session has a folder of its own, named by its uid. */
export function trashedPaths(root: string, uid: string, sessionId: string): SessionPaths {
  return pathsIn(join(root, "trash", uid), sessionId);
}

function pathsIn(folder: string, sessionId: string): SessionPaths {
  const working = join(folder, `${sessionId}.jsonl`);
  return { folder, working, log: join(folder, `${sessionId}.log.jsonl`), lock: `${working}.lock` };
}

export function stateFolder(root: string, place: AgentPlace, sessionId: string): string {
  return join(agentFolder(root, place), "context", sessionId);
}

export function blobPath(root: string, place: AgentPlace, sha256: string): string {
  return join(agentFolder(root, place), "blobs", sha256);
}
