import type { Entry } from "../core/entries.ts";
import { isBookkeeping } from "../core/entries.ts";
import { kindOf, parseKey } from "../core/keys.ts";
import type { SessionTree } from "../core/tree.ts";
import type { ListedSession, SessionMeta, TrashedSession } from "./contract.ts";
import { digestOfTree } from "./digest.ts";

/** The values that a store chooses for a new session. */
interface NewSession {
  readonly uid: string;
  readonly userId: string | null;
  readonly agentId: string;
  readonly key: string;
  readonly meta: SessionMeta;
}

/**
 * Returns the record and digest of a new session that contains a tree. If the tree's header has no time, the session is
 * created at `now`.
 */
export function newSession(chosen: NewSession, tree: SessionTree, now: number): ListedSession {
  const { timestamp, id: sessionId, cwd = "" } = tree.header;
  const createdAt = timestamp === undefined ? now : Date.parse(timestamp) || 0;
  const { name, leafId } = tree;
  const { uid, userId, agentId, key, meta } = chosen;
  return {
    ...{ uid, userId, agentId, key, kind: kindOf(parseKey(key)), sessionId, cwd },
    ...{
      version: 1,
      meta,
      name,
      createdAt,
      updatedAt: Math.max(createdAt, lastSaid(tree.entries())),
      leafId,
    },
    digest: digestOfTree(tree, createdAt),
  };
}

/** Returns the time of the last conversation entry, or 0 if there is none. */
export function lastSaid(entries: Iterable<Entry>): number {
  let time = 0;
  for (const entry of entries) if (!isBookkeeping(entry)) time = Date.parse(entry.timestamp) || time;
  return time;
}

export function trashedSession(session: ListedSession, removedAt: number | null): TrashedSession {
  const { uid, userId, agentId, key, kind, sessionId, meta, digest } = session;
  const label = meta.label ?? null;
  const { bytes } = digest;
  return { uid, userId, agentId, key, kind, sessionId, label, removedAt: removedAt ?? 0, bytes };
}
