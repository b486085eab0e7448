import { present } from "../core/present.ts";
import type { SessionListPayload, SessionRow, TrashListPayload, TrashRow } from "../protocol/session-list.ts";
import type { RunStore, SessionWork } from "../runs/contract.ts";
import type {
  ListedSession,
  Scope,
  SessionMeta,
  SessionPage,
  SessionReach,
  SessionRecord,
  SessionStore,
  TrashedSession,
} from "../store/contract.ts";
import { channelOf } from "../store/list-query.ts";
import { stateOf } from "./list-by-state.ts";

/** Row data that only the caller of a list can supply. */
export interface ListPlace {
  readonly path?: string;
  /** Keyed by uid. */
  transcriptPaths?(sessions: readonly ListedSession[]): ReadonlyMap<string, string>;
  /** If absent, rows do not show what the sessions are doing. */
  readonly runs?: Pick<RunStore, "work">;
  /** If absent, rows have no details. */
  detailsOf?(session: ListedSession): RowDetails;
}

/** The largest page that a store returns. */
const pageLimit = 1000;

/** Returns a page of `sessions.list`, read only from the index. Its sessions can belong to several users. */
export async function listPayload(
  sessions: SessionStore,
  page: SessionPage,
  place: ListPlace = {},
): Promise<SessionListPayload> {
  const works = await place.runs?.work(page.sessions.map(({ uid }) => uid));
  const paths = place.transcriptPaths?.(page.sessions);
  // While a store's index is behind, every list call spends time catching up, so the children are not listed.
  const children = page.behind === 0 ? await childrenByUser(sessions, page.sessions) : new Map();
  const rows = page.sessions.map((session) =>
    listRow(session, {
      childSessions: children.get(session.userId)?.get(session.key),
      bytes: session.digest.bytes,
      transcriptPath: paths?.get(session.uid),
      work: works?.get(session.uid),
      details: place.detailsOf?.(session),
    }),
  );
  return present({
    count: rows.length,
    sessions: rows,
    nextCursor: page.nextCursor,
    indexing: page.behind === 0 ? null : { behind: page.behind },
    path: place.path,
  });
}

/**
 * Returns a session with its totals, or `null` if it is not in the index. Finds a session that has been archived or
 * unarchived since the record was read.
 */
export async function listedSession(
  sessions: SessionStore,
  { userId, agentId, key, uid, meta }: SessionRecord,
): Promise<ListedSession | null> {
  const wasArchived = meta.archived === true;
  for (const archived of [wasArchived, !wasArchived]) {
    const page = await sessions.list(
      { ...present({ userId }), agentId },
      {
        reach: { treeOf: key, descendants: false, agentIds: [] },
        archived,
        includeGlobal: true,
        includeUnknown: true,
        limit: pageLimit,
      },
    );
    const found = page.sessions.find((each) => each.uid === uid);
    if (found !== undefined) return found;
  }
  return null;
}

/**
 * Returns the keys of the sessions that each parent spawned, archived ones last. With `reach`, returns only sessions
 * within it. Makes one query for all parents instead of two per parent.
 */
export async function childrenOf(
  sessions: SessionStore,
  { userId }: Scope,
  parents: readonly string[],
  reach?: SessionReach,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const scope = userId === undefined ? {} : { userId };
  const query = { spawnedBy: parents, limit: pageLimit, ...present({ reach }) };
  const children = new Map<string, string[]>();
  if (parents.length === 0) return children;
  for (const archived of [false, true]) {
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: SessionPage = await sessions.list(scope, {
        ...query,
        archived,
        ...(cursor === "" ? {} : { cursor }),
      });
      for (const { key, meta } of page.sessions) addTo(children, meta.spawnedBy ?? "", key);
      cursor = page.nextCursor;
    }
  }
  return children;
}

/** Returns the children's keys by user and parent key, because keys are unique only per user. */
async function childrenByUser(
  sessions: SessionStore,
  parents: readonly ListedSession[],
): Promise<Map<string | null, ReadonlyMap<string, readonly string[]>>> {
  const children = new Map<string | null, ReadonlyMap<string, readonly string[]>>();
  for (const [userId, own] of Map.groupBy(parents, (parent) => parent.userId)) {
    const keys = own.map(({ key }) => key);
    children.set(userId, await childrenOf(sessions, present({ userId }), keys));
  }
  return children;
}

function addTo(children: Map<string, string[]>, parent: string, key: string): void {
  const known = children.get(parent);
  if (known === undefined) children.set(parent, [key]);
  else known.push(key);
}

/** Lists the trash in a scope. */
export async function listTrash(
  sessions: SessionStore,
  scope: Scope,
  place: Pick<ListPlace, "path"> = {},
): Promise<TrashListPayload> {
  const rows = (await sessions.trashed(scope)).map(trashRow);
  return present({ count: rows.length, sessions: rows, path: place.path });
}

/** The fields of a row that do not come from the record. */
interface RowExtras {
  readonly transcriptPath?: string | undefined;
  readonly childSessions?: readonly string[] | undefined;
  readonly bytes?: number;
  /** Absent if unknown. */
  readonly work?: Pick<SessionWork, "status" | "startedAt" | "endedAt" | "approvals"> | undefined;
  readonly details?: RowDetails | undefined;
}

/** Optional row fields, as the reader is allowed to see them. */
export interface RowDetails {
  readonly cwd?: string;
  readonly summary?: string;
}

/** Returns a session as `sessions.list` shows it. */
export function listRow(session: ListedSession, extras: RowExtras = {}): SessionRow {
  const { key, kind, sessionId, updatedAt, meta, name, userId, digest } = session;
  const { delivery } = meta;
  const children = extras.childSessions ?? [];
  return present({
    key,
    kind,
    channel: channelOf(session),
    label: meta.label,
    displayName: meta.displayName ?? name,
    deliveryContext:
      delivery === undefined
        ? undefined
        : present({ channel: delivery.channel, to: delivery.to, accountId: delivery.accountId }),
    updatedAt,
    sessionId,
    model: modelOf(session),
    contextTokens: digest.contextTokens,
    totalTokens: digest.totalTokens,
    estimatedCostUsd: digest.costUsd,
    ...workFields(updatedAt, extras.work),
    childSessions: children.length === 0 ? undefined : [...children],
    spawnedBy: meta.spawnedBy,
    thinkingLevel: meta.thinkingLevel ?? digest.thinkingLevel,
    verboseLevel: meta.verboseLevel,
    systemSent: flag(meta.systemSent),
    abortedLastRun: flag(meta.abortedLastRun) ?? (extras.work?.status === "aborted" ? true : undefined),
    sendPolicy: meta.sendPolicy,
    ...lastTarget(session.meta),
    userId,
    bytes: extras.bytes,
    transcriptPath: extras.transcriptPath,
    cwd: extras.details?.cwd,
    summary: extras.details?.summary,
  });
}

/** Returns a session in the trash as `sessions.list` shows it. */
function trashRow({ key, kind, sessionId, label, removedAt, bytes, userId }: TrashedSession): TrashRow {
  return present({ key, kind, sessionId, label, removedAt, bytes, userId });
}

/** Returns the model chosen for the session. If there is none, returns the model that answered last. */
export function modelOf({ meta, digest }: ListedSession): string | null {
  if (meta.model !== undefined) return meta.model;
  return digest.model === null ? null : `${digest.model.provider}/${digest.model.modelId}`;
}

/** `startedAt` is when the first run started. `runtimeMs` extends to the end of the last run, or to the last entry. */
function workFields(updatedAt: number, work: RowExtras["work"]) {
  if (work === undefined) return {};
  const { status, startedAt, endedAt } = work;
  const state = stateOf(work);
  const runtimeMs = startedAt === null ? null : Math.max(0, (endedAt ?? updatedAt) - startedAt);
  return { status, state, startedAt, endedAt, runtimeMs };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function flag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** Returns the delivery context. If there is none, returns the target of the last delivered reply. */
function lastTarget({
  delivery,
  ...meta
}: SessionMeta): Pick<SessionRow, "lastChannel" | "lastTo" | "lastAccountId"> {
  const { channel, to, accountId } = delivery ?? {
    channel: text(meta.lastChannel),
    to: text(meta.lastTo),
    accountId: text(meta.lastAccountId),
  };
  return present({ lastChannel: channel, lastTo: to, lastAccountId: accountId });
}
