import { mapConcurrently } from "../../core/concurrency.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Lookup } from "../../core/references.ts";
import { keyOfReference, sessionIdLookups } from "../../core/references.ts";
import type { Params } from "../../protocol/method-table.ts";
import type { SessionListPayload, SessionRow } from "../../protocol/session-list.ts";
import { readFamily } from "../../sessions/family.ts";
import { firstFound } from "../../sessions/find-session.ts";
import type { ListPlace, RowDetails } from "../../sessions/list.ts";
import { childrenOf, listedSession, listPayload, listRow, listTrash } from "../../sessions/list.ts";
import type { ListSource } from "../../sessions/list-by-state.ts";
import { listArchivedToo, listByState } from "../../sessions/list-by-state.ts";
import { maskedSearch } from "../../sessions/masked-search.ts";
import { searchSessions } from "../../sessions/search-sessions.ts";
import { UsageReports } from "../../sessions/usage-report.ts";
import type { ListedSession, SessionQuery } from "../../store/contract.ts";
import { digestOfTree } from "../../store/digest.ts";
import type { Mask } from "../auth/mask.ts";
import { maskFor } from "../auth/mask.ts";
import type { Call, FolderApp, HandlersOf } from "./dispatch.ts";
import { PayloadCache } from "./payload-cache.ts";
import type { SessionName } from "./session-lookup.ts";
import {
  askerOf,
  findSession,
  lookUpSession,
  requireEveryUser,
  scopeOf,
  throwNotFound,
} from "./session-lookup.ts";
import { readWholeTree } from "./sessions-export.ts";

type ListMethod =
  | "sessions.list"
  | "sessions.get"
  | "sessions.resolve"
  | "sessions.search"
  | "sessions.trash";

const minute = 60_000;
/** The maximum number of cached lists. */
const mostLists = 64;
/** The maximum number of sessions that one list can name. */
const mostNamed = 100;
const readsAtATime = 8;

/**
 * Methods that list and find sessions. They read the index. They read a log only if the index does not have the
 * session's digest.
 */
export function listHandlers(app: FolderApp): HandlersOf<ListMethod> {
  const { store } = app;
  const lists = new PayloadCache<SessionListPayload>({ most: mostLists });
  return {
    "sessions.list": async (params, call) => {
      // A list that depends on the current time changes even without a write, so it is not cached.
      const mark = params.activeMinutes === undefined ? ((await store.upkeep?.changeMark()) ?? null) : null;
      if (mark === null) return listFor(app, params, call);
      const name = JSON.stringify([params, call.userId, call.isAdmin]);
      return lists.get(name, mark, () => listFor(app, params, call));
    },
    "sessions.get": (params, call) => detailsOf(app, call, params),
    "sessions.resolve": async ({ key, sessionId, label, spawnedBy, prefix, agentId }, call) => {
      const name = key ?? sessionId ?? label ?? "";
      const found =
        key === undefined
          ? await findBy(app, call, { ...present({ sessionId, label }), ...present({ agentId }) })
          : await lookUpSession(app, call, { key, ...present({ agentId }) }, prefix === true);
      const parent = spawnedBy === undefined ? null : await parentKey(app, call, spawnedBy, agentId);
      if (found === null || (parent !== null && found.meta.spawnedBy !== parent)) return throwNotFound(name);
      return { key: found.key, sessionId: found.sessionId, uid: found.uid };
    },
    "sessions.search": async ({ query, key, cursor, agentId, ...rest }, call) => {
      const within =
        key === undefined ? null : await findSession(app, call, { key, ...present({ agentId }) });
      const wanted = call.isAdmin ? { text: query } : maskedSearch(query, app.redactor);
      const { role, since, until, limit, bySession } = rest;
      const searched = {
        ...wanted,
        ...present({ sessionId: within?.sessionId, role, since, until, limit, bySession }),
      };
      return searchSessions(app, scopeOf(call, agentId), searched, { cursor, now: app.clock.now() });
    },
    "sessions.trash": async ({ agentId }, call) =>
      listTrash(store.sessions, scopeOf(call, agentId), pathFor(app, call)),
  };
}

async function listFor(
  app: FolderApp,
  params: Params<"sessions.list">,
  call: Call,
): Promise<SessionListPayload> {
  const { limit, cursor, activeMinutes, agentId, kinds, channels, label, search, archived, sort } = params;
  const { includeGlobal, includeUnknown, includeDetails, spawnedBy, states, keys } = params;
  const query: SessionQuery = present({
    ...{ limit, cursor, kinds, channels, label, archived, sort, includeGlobal, includeUnknown, text: search },
    activeSince: activeMinutes === undefined ? null : app.clock.now() - activeMinutes * minute,
    spawnedBy: spawnedBy === undefined ? null : await parentKey(app, call, spawnedBy, agentId),
    ...(await namedSessions(app, params, call)),
  });
  const mask = maskFor(app, call);
  const place: ListPlace = {
    ...placeFor(app, call),
    ...(includeDetails === true ? { detailsOf: (session) => rowDetails(session, call, mask) } : {}),
  };
  const oneList = sourceFor(app, params, call);
  const inAnyState = keys === undefined || archived !== undefined ? oneList : listArchivedToo(oneList);
  const userId = params.allUsers === true ? undefined : call.userId;
  const source =
    states === undefined ? inAnyState : listByState(inAnyState, states, await app.runs.unsettledWork(userId));
  const payload = await listPayload(app.store.sessions, await source.list(query), place);
  const counted = params.total === true ? { ...payload, total: await source.count(query) } : payload;
  return withMaskedRows(counted, mask);
}

type ListParams = Pick<Params<"sessions.list">, "agentId" | "allUsers">;

function sourceFor(app: FolderApp, { agentId, allUsers }: ListParams, call: Call): ListSource {
  const { sessions } = app.store;
  if (allUsers !== true) {
    const scope = scopeOf(call, agentId);
    return { list: (query) => sessions.list(scope, query), count: (query) => sessions.count(scope, query) };
  }
  const everyUser = requireEveryUser(app);
  const agent = agentId === undefined ? undefined : parseAgentId(agentId);
  return {
    list: (query) => everyUser.listAllUsers(query, agent),
    count: (query) => everyUser.countAllUsers(query, agent),
  };
}

/**
 * Returns a filter that matches exactly the sessions in `keys`. A canonical key is resolved without reading its
 * session.
 */
async function namedSessions(
  app: FolderApp,
  { agentId, keys }: Params<"sessions.list">,
  call: Call,
): Promise<Pick<SessionQuery, "uids" | "limit" | "includeGlobal" | "includeUnknown">> {
  if (keys === undefined) return {};
  const uids = await mapConcurrently([...new Set(keys)], readsAtATime, async (name) => {
    const reader = present({ agentId });
    const key = keyOfReference(name, askerOf(app, reader));
    const found = key === null ? null : await app.runs.read(() => app.store.work.find(call.userId, { key }));
    return (found ?? (await lookUpSession(app, call, { key: name, ...reader })))?.uid ?? [];
  });
  return { uids: uids.flat(), limit: mostNamed, includeGlobal: true, includeUnknown: true };
}

/** A deleted parent can still have children. In that case, only its key is known. */
async function parentKey(app: FolderApp, call: Call, name: string, agentId?: string): Promise<string> {
  const parent = await lookUpSession(app, call, { key: name, ...present({ agentId }) });
  return parent?.key ?? name;
}

async function findBy(
  { store, agents }: FolderApp,
  call: Call,
  {
    sessionId,
    label,
    agentId = agents.first,
  }: { readonly sessionId?: string; readonly label?: string; readonly agentId?: string },
) {
  const agent = parseAgentId(agentId);
  const lookups: Lookup[] =
    sessionId === undefined
      ? [{ by: "label", label: label ?? "", agentId: agent }]
      : sessionIdLookups(sessionId, agent);
  return firstFound(store.sessions, scopeOf(call), lookups);
}

function pathFor({ store }: FolderApp, { isAdmin }: Call): Pick<ListPlace, "path"> {
  return present({ path: isAdmin ? store.root : null });
}

function placeFor(app: FolderApp, call: Call): ListPlace {
  const transcriptPaths = call.isAdmin ? app.store.upkeep?.workingSets : null;
  return { ...pathFor(app, call), ...present({ transcriptPaths }), runs: app.runs };
}

function withMaskedRows(payload: SessionListPayload, mask: Mask): SessionListPayload {
  return mask.isOff ? payload : { ...payload, sessions: payload.sessions.map((row) => masked(row, mask)) };
}

/** Masks the display name. Keys and IDs are left unchanged. */
function masked<Row extends SessionRow>(row: Row, mask: Mask): Row {
  const { displayName } = row;
  return displayName === undefined ? row : { ...row, displayName: mask.text(displayName) };
}

async function detailsOf(app: FolderApp, call: Call, named: Parameters<typeof findListed>[2]) {
  const session = await findListed(app, call, named);
  const { uid, agentId, version, createdAt, meta, leafId, digest, key } = session;
  const work = (await app.runs.work([uid])).get(uid);
  const children = await childrenOf(app.store.sessions, scopeOf(call), [key]);
  const mask = maskFor(app, call);
  const extras = {
    ...{ childSessions: children.get(key), work, bytes: digest.bytes },
    transcriptPath: call.isAdmin ? app.store.upkeep?.workingSets([session]).get(uid) : undefined,
    details: rowDetails(session, call, mask),
  };
  return present({
    ...masked(listRow(session, present(extras)), mask),
    agentId,
    version,
    createdAt,
    archived: meta.archived,
    sandboxed: meta.sandboxed,
    leafId,
    compactions: digest.compactions,
    runId: work?.runId,
    queued: work?.queued,
  });
}

function rowDetails({ cwd, digest: { summary } }: ListedSession, { isAdmin }: Call, mask: Mask): RowDetails {
  return present({
    cwd: isAdmin ? cwd : null,
    summary: summary === null ? null : summaryFor(summary, mask),
  });
}

/** A stored summary might have been truncated in the middle of a secret. */
function summaryFor(summary: string, mask: Mask): string {
  return mask.isOff ? summary : mask.text(summary.replace(/\S*…$/, "…"));
}

/** Returns a session with its digest, which is computed if the index does not have it yet. */
export async function findListed(app: FolderApp, call: Call, named: SessionName): Promise<ListedSession> {
  const session = await findSession(app, call, named);
  const listed = await listedSession(app.store.sessions, session);
  if (listed !== null) return listed;
  return {
    ...session,
    digest: digestOfTree(await readWholeTree(app, session, call.signal), session.createdAt),
  };
}

/**
 * Methods that report token usage and cost. All calls share one cache of reports, so unchanged sessions are read only
 * once.
 */
export function usageHandlers(app: FolderApp): HandlersOf<"sessions.usage"> {
  const reports = new UsageReports(app.store.sessions);
  return {
    "sessions.usage": async (params, call) => {
      const { since, until, by = [], timeZone, key, agentId } = params;
      const session = key === undefined ? null : await findListed(app, call, { key, agentId });
      const query = { by, ...present({ since, until, timeZone, session }) };
      const { list } = sourceFor(app, params, call);
      return reports.report(list, query, app.clock.now(), call.signal);
    },
  };
}

/**
 * Returns the sessions related to a session. They all belong to the call's user, so a caller that is allowed to read
 * the session is allowed to read them. Only text is masked.
 */
export function familyHandlers(app: FolderApp): HandlersOf<"sessions.family"> {
  const { runs } = app;
  return {
    "sessions.family": async (params, call) => {
      const session = await findSession(app, call, params);
      const mask = maskFor(app, call);
      const source = { sessions: app.store.sessions, runs, show: (text: string) => mask.text(text) };
      return readFamily(source, session);
    },
  };
}
