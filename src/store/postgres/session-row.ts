import type { SessionHeader } from "../../core/entries.ts";
import { kindOf, parseKey, spawnIdOf } from "../../core/keys.ts";
import type { Json, ListedSession, SessionDigest, SessionMeta } from "../contract.ts";
import { channelOf, namesOf, sortValue } from "../list-query.ts";
import type { EntryPlace } from "./entry-places.ts";
import { acceptedText, idKey, lookupText, userKey } from "./lookup-text.ts";

/** A session as stored: its record and digest, and the values that an append depends on. */
export interface SessionRow {
  readonly session: ListedSession;
  readonly header: SessionHeader;
  readonly removedAt: number | null;
  /** Increases with every change to the row. */
  readonly revision: number;
  readonly tipId: string | null;
  /** `null` for an empty session. Not loaded for lists. */
  readonly tip: EntryPlace | null;
  readonly isOdd: boolean;
  /** The size of the log in bytes. */
  readonly bytes: number;
  /** The run that may write, if there is one. `fence` increases when another run takes over. */
  readonly holderRun: string | null;
  readonly fence: number;
}

/** The part of a row that is not looked up, as JSON. */
interface Detail {
  readonly key: string;
  readonly cwd: string;
  readonly name: string | null;
  readonly leafId: string | null;
  readonly tipId: string | null;
  readonly digest: SessionDigest;
  /** Absent for the unnamed user, or if the column `user_id` contains the ID. */
  readonly userId?: string;
}

/** Returns the user of a row. */
export function userOf(detail: string, key: string): string | null {
  if (key === userKey(null)) return null;
  return (JSON.parse(detail) as Detail).userId ?? key;
}

/** A row as the database returns it. */
export interface StoredSession {
  readonly uid: string;
  readonly agent_id: string;
  readonly session_id: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly removed_at: number | null;
  readonly version: number;
  readonly is_odd: boolean;
  readonly bytes: number;
  readonly revision: number;
  readonly fence: number;
  readonly holder_run: string | null;
  readonly header: string;
  readonly meta: string;
  readonly detail: string;
}

/** The columns of `StoredSession`. */
export const storedColumns = `uid, agent_id, session_id, created_at, updated_at, removed_at, version, is_odd,
  bytes, revision, fence, holder_run, header, meta, detail`;

/** The positions of an entry as the database returns them. */
export interface StoredPlace {
  readonly seq: number;
  readonly chain_seq: number;
  readonly up_seq: number | null;
  readonly leaf_seq: number | null;
  readonly context_seq: number | null;
  readonly model_seq: number | null;
  readonly thinking_seq: number | null;
  readonly system_seq: number | null;
}

export function placeOf(stored: StoredPlace): EntryPlace {
  return {
    seq: stored.seq,
    chainSeq: stored.chain_seq,
    upSeq: stored.up_seq,
    leafSeq: stored.leaf_seq,
    contextSeq: stored.context_seq,
    modelSeq: stored.model_seq,
    thinkingSeq: stored.thinking_seq,
    systemSeq: stored.system_seq,
  };
}

export function rowOf(
  userId: string | null,
  stored: StoredSession,
  tip: StoredPlace | null = null,
): SessionRow {
  const { key, cwd, name, leafId, tipId, digest } = JSON.parse(stored.detail) as Detail;
  const session: ListedSession = {
    ...{ uid: stored.uid, userId, agentId: stored.agent_id, key, kind: kindOf(parseKey(key)) },
    ...{ sessionId: stored.session_id, cwd, version: stored.version },
    ...{ meta: JSON.parse(stored.meta) as SessionMeta, name },
    ...{ createdAt: stored.created_at, updatedAt: stored.updated_at, leafId, digest },
  };
  return {
    session,
    header: JSON.parse(stored.header) as SessionHeader,
    removedAt: stored.removed_at,
    revision: stored.revision,
    tipId,
    tip: tip === null ? null : placeOf(tip),
    isOdd: stored.is_odd,
    bytes: stored.bytes,
    holderRun: stored.holder_run,
    fence: stored.fence,
  };
}

/**
 * Returns the columns of a row. `meta` and the header are large and rarely change, so an update omits them if they are
 * unchanged.
 */
export function columnsOf(row: SessionRow, before?: SessionRow): Readonly<Record<string, Json>> {
  const { session, header, removedAt, revision, tip, tipId, isOdd } = row;
  const { key, cwd, name, leafId, digest, meta } = session;
  const { userId } = session;
  const isReadable = userId === null || userId === userKey(userId);
  const detail: Detail = { key, cwd, name, leafId, tipId, digest, ...(isReadable ? {} : { userId }) };
  const optional = (value: string | null | undefined) => (value == null ? null : lookupText(value));
  return {
    ...{ uid: session.uid, user_id: userKey(session.userId), agent_id: session.agentId },
    ...{ key: lookupText(key), session_id: session.sessionId, id_key: idKey(session.sessionId) },
    ...{ kind: session.kind, channel: lookupText(channelOf(session)), label: optional(meta.label) },
    ...{ spawn_id: optional(spawnIdOf(key)), spawned_by: optional(meta.spawnedBy) },
    ...{ forked_from: optional(meta.forkedFrom?.sessionId), archived: meta.archived === true },
    ...{ names: acceptedText(namesOf(session)), sort_name: acceptedText(String(sortValue(session, "name"))) },
    ...{ created_at: session.createdAt, updated_at: session.updatedAt },
    ...{ tokens: digest.totalTokens, cost: Number(sortValue(session, "cost")), bytes: row.bytes },
    ...{ removed_at: removedAt, version: session.version, tip_seq: tip?.seq ?? null, is_odd: isOdd },
    ...{ revision, fence: 0, detail: JSON.stringify(detail) },
    ...(before === undefined ? { header: JSON.stringify(header) } : {}),
    ...(before?.session.meta === meta ? {} : { meta: JSON.stringify(meta) }),
  };
}
