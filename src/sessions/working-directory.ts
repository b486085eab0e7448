import { present } from "../core/present.ts";
import type { FileBoundary, ParentPlace } from "../file-access/file-boundary.ts";
import type { SessionRecord, Store } from "../store/contract.ts";

export interface WorkingDirectoryDeps {
  readonly store: Pick<Store, "sessions">;
  readonly files: FileBoundary;
}

/** More than any lineage has. Metadata that names a cycle of parents ends here. */
const maxAncestors = 16;

/** A session with the folder that it may work in now in place of the recorded one. */
export async function withWorkingDirectory(
  deps: WorkingDirectoryDeps,
  session: SessionRecord,
): Promise<SessionRecord> {
  return { ...session, cwd: await workingDirectoryOf(deps, session, maxAncestors) };
}

async function workingDirectoryOf(
  deps: WorkingDirectoryDeps,
  session: SessionRecord,
  ancestors: number,
): Promise<string> {
  const { userId, agentId, sessionId, cwd } = session;
  const parent = await parentPlace(deps, session, ancestors);
  return deps.files.cwdOf({ userId, agentId, sessionId, cwd, parent });
}

async function parentPlace(
  deps: WorkingDirectoryDeps,
  { userId, meta }: SessionRecord,
  ancestors: number,
): Promise<ParentPlace | null> {
  if (meta.spawnedBy === undefined || ancestors === 0) return null;
  const [parent] = await deps.store.sessions.find(present({ userId }), { by: "key", key: meta.spawnedBy });
  if (parent === undefined) return null;
  return { agentId: parent.agentId, cwd: await workingDirectoryOf(deps, parent, ancestors - 1) };
}
