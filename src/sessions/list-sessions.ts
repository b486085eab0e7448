import { present } from "../core/present.ts";
import type { SearchPayload, SessionListPayload, TrashListPayload } from "../protocol/session-list.ts";
import type { RunStore } from "../runs/contract.ts";
import type {
  ListedSession,
  Scope,
  SearchQuery,
  SessionPage,
  SessionReach,
  SessionRecord,
  SessionStore,
  Store,
} from "../store/contract.ts";
import type { RowDetails } from "./list-row.ts";
import { listRow, trashRow } from "./list-row.ts";

/** What a list can say that only its store's home knows. */
export interface ListPlace {
  readonly path?: string;
  /** By uid. */
  transcriptPaths?(sessions: readonly ListedSession[]): ReadonlyMap<string, string>;
  /** What goes on in the sessions; left out: rows do not say. */
  readonly runs?: Pick<RunStore, "work">;
  /** From what the index has of it; left out: rows do not say. */
  detailsOf?(session: ListedSession): RowDetails;
}

/** As many as a store gives in one page. */
const mostAtATime = 1000;

/** A page of `sessions.list`: from the index, no transcript is opened. Its sessions may be those of several users. */
export async function listPayload(
  sessions: SessionStore,
  page: SessionPage,
  place: ListPlace = {},
): Promise<SessionListPayload> {
  const works = await place.runs?.work(page.sessions.map(({ uid }) => uid));
  const paths = place.transcriptPaths?.(page.sessions);
  // Every list of a store that is behind spends time on catching up.
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

/** A session with what its entries come to; `null`: the index does not have it. The record may be older than its last archiving. */
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
        limit: mostAtATime,
      },
    );
    const found = page.sessions.find((each) => each.uid === uid);
    if (found !== undefined) return found;
  }
  return null;
}

/**
 * The keys of what sessions spawned, by the key of who did: of any agent, archived ones last; `reach`: of these alone.
 * One question for all of them: a page of sessions would else be two for each.
 */
export async function childrenOf(
  sessions: SessionStore,
  { userId }: Scope,
  parents: readonly string[],
  reach?: SessionReach,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const scope = userId === undefined ? {} : { userId };
  const query = { spawnedBy: parents, limit: mostAtATime, ...present({ reach }) };
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

/** The same of a page, by user: keys are unique for a user. */
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

/** The trash of a scope. */
export async function listTrash(
  sessions: SessionStore,
  scope: Scope,
  place: Pick<ListPlace, "path"> = {},
): Promise<TrashListPayload> {
  const rows = (await sessions.trashed(scope)).map(trashRow);
  return present({ count: rows.length, sessions: rows, path: place.path });
}

/** `sessions.search`. */
export async function searchSessions(store: Store, scope: Scope, query: SearchQuery): Promise<SearchPayload> {
  const { hits, behind } = await store.search.search(scope, query);
  const rows = hits.map(({ key, sessionId, entryId, role, time, snippet }) => ({
    key,
    sessionId,
    entryId,
    role,
    time,
    snippet,
  }));
  return present({ count: rows.length, hits: rows, indexing: behind === 0 ? null : { behind } });
}
