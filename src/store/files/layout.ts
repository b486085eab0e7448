import { join, sep } from "node:path";
import { checkNamespace } from "../../core/namespace.ts";
import { spaceOf } from "../../core/space.ts";

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
export const trashName = "trash";
export const logEnding = ".log.jsonl";
export const workingEnding = ".jsonl";

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
