import type { SessionHeader } from "../../core/entries.ts";
import { newHeader } from "../../core/header.ts";
import { kindOf, parseKey } from "../../core/keys.ts";
import type { SessionRecord } from "../contract.ts";
import type { SessionFile } from "./session-file.ts";
import type { SessionRow } from "./work-db.ts";

/** A session as its row and its log say. */
export function recordOf(row: SessionRow, file: SessionFile): SessionRecord {
  const { tree, meta: versioned, saidAt } = file.latest;
  const { meta, version } = versioned;
  return {
    uid: row.uid,
    userId: row.userId,
    agentId: row.agentId,
    key: row.key,
    kind: kindOf(parseKey(row.key)),
    sessionId: row.sessionId,
    cwd: tree.header.cwd ?? "",
    version,
    meta,
    name: tree.name,
    createdAt: row.createdAt,
    updatedAt: Math.max(row.createdAt, saidAt ?? 0),
    leafId: tree.leafId,
  };
}

/** A session that has been accepted and whose log is not made yet. */
export function firstRecordOf(row: SessionRow): SessionRecord {
  const { uid, userId, agentId, key, sessionId, createdAt, first } = row;
  return {
    uid,
    userId,
    agentId,
    key,
    kind: kindOf(parseKey(key)),
    sessionId,
    cwd: first.cwd,
    version: 1,
    meta: first.meta,
    name: null,
    createdAt,
    updatedAt: createdAt,
    leafId: null,
  };
}

/** The header of a session that has been accepted. */
export function headerOf(row: SessionRow): SessionHeader {
  const { cwd, meta, parentSession } = row.first;
  const header = newHeader({ id: row.sessionId, time: row.createdAt, cwd, parentSession });
  const user = row.userId === null ? {} : { user: row.userId };
  return { ...header, skein: { key: row.key, uid: row.uid, agent: row.agentId, ...user, meta } };
}
