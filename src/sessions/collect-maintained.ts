import type { ListedSession, Scope, SessionStore, TrashedSession } from "../store/contract.ts";
import type { MaintainedSession, MaintenanceInput } from "./maintenance.ts";

const pageSize = 1000;

/** What maintenance looks at: every session of these users, archived ones and the trash too. */
export async function collectMaintained(
  sessions: SessionStore,
  users: readonly (string | null)[],
): Promise<Pick<MaintenanceInput, "sessions" | "trashed">> {
  const live: MaintainedSession[] = [];
  const trashed = [];
  for (const userId of users) {
    const scope = userId === null ? {} : { userId };
    for (const archived of [false, true]) {
      for await (const session of allOf(sessions, scope, archived)) live.push(maintained(session));
    }
    trashed.push(...(await sessions.trashed(scope)).map(maintainedInTrash));
  }
  return { sessions: live, trashed };
}

async function* allOf(
  sessions: SessionStore,
  scope: Scope,
  archived: boolean,
): AsyncGenerator<ListedSession> {
  let cursor: string | null = null;
  do {
    const query = { archived, includeGlobal: true, limit: pageSize, ...(cursor === null ? {} : { cursor }) };
    const page = await sessions.list(scope, query);
    yield* page.sessions;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

function maintained({
  uid,
  userId,
  sessionId,
  key,
  updatedAt,
  meta,
  digest,
}: ListedSession): MaintainedSession {
  const archived = meta.archived === true;
  return { uid, userId, sessionId, key, updatedAt, archived, bytes: digest.bytes };
}

function maintainedInTrash({ uid, userId, sessionId, key, removedAt, bytes }: TrashedSession) {
  return { uid, userId, sessionId, key, updatedAt: removedAt, archived: false, bytes, removedAt };
}
