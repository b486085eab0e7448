import { present } from "../core/present.ts";
import type { SearchPayload, SessionListPayload, TrashListPayload } from "../protocol/session-list.ts";
import type { RunStore } from "../runs/contract.ts";
import type {
  ListedSession,
  Scope,
  SearchQuery,
  SessionPage,
  SessionQuery,
  SessionReach,
  SessionStore,
  Store,
} from "../store/contract.ts";
import { listRow, trashRow } from "./list-row.ts";

/** What a list can say that only its store's home knows. */
export interface ListPlace {
  readonly path?: string;
  transcriptPath?(session: ListedSession): string;
  /** What goes on in the sessions; left out: rows do not say. */
  readonly runs?: Pick<RunStore, "work">;
}

const mostChildren = 1000;

/** `sessions.list`: from the index, no transcript is opened. */
export async function listSessions(
  sessions: SessionStore,
  scope: Scope,
  query: SessionQuery,
  place: ListPlace = {},
): Promise<{ payload: SessionListPayload; page: SessionPage }> {
  const page = await sessions.list(scope, query);
  const works = await place.runs?.work(page.sessions.map(({ uid }) => uid));
  const rows = [];
  for (const session of page.sessions) {
    // Every list of a store that is behind spends time on catching up.
    const childSessions = page.behind === 0 ? await childrenOf(sessions, scope, session.key) : [];
    const transcriptPath = place.transcriptPath?.(session);
    const work = works?.get(session.uid);
    rows.push(listRow(session, { childSessions, ...present({ transcriptPath, work }) }));
  }
  const payload = present({
    count: rows.length,
    sessions: rows,
    nextCursor: page.nextCursor,
    indexing: page.behind === 0 ? null : { behind: page.behind },
    path: place.path,
  });
  return { payload, page };
}

/** The keys of what a session spawned: of any agent, archived ones too; `reach`: of these alone. */
export async function childrenOf(
  sessions: SessionStore,
  { userId }: Scope,
  key: string,
  reach?: SessionReach,
): Promise<string[]> {
  const scope = userId === undefined ? {} : { userId };
  const query = { spawnedBy: key, limit: mostChildren, ...present({ reach }) };
  const pages = await Promise.all([
    sessions.list(scope, query),
    sessions.list(scope, { ...query, archived: true }),
  ]);
  return pages.flatMap((page) => page.sessions.map((session) => session.key));
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
