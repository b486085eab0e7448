import { present } from "../../core/present.ts";
import type { Scope, SessionRecord } from "../../store/contract.ts";
import type { BetweenDeps } from "./contract.ts";
import type { Spawner } from "./spawn-checks.ts";
import type { SpawnNames } from "./spawn-names.ts";
import type { SpawnRefusal, SpawnRequest } from "./spawn-request.ts";

/** Sessions under the key of a child whose run is not there. */

/**
 * A fork whose process died before its run was accepted; `null`: nothing is under the key. Whatever else is there has had a
 * life of its own, its run is long forgotten, and it is nobody's to go on with or to take away: `conflict`.
 */
export async function leftFork(
  { store, runs }: BetweenDeps,
  { userId, session: parent }: Spawner,
  { context }: SpawnRequest,
  { key }: SpawnNames,
): Promise<SessionRecord | SpawnRefusal | null> {
  const scope: Scope = present({ userId });
  const [found] = await store.sessions.find(scope, { by: "key", key });
  if (found === undefined) return null;
  const { uid, leafId } = found;
  const isUntouched =
    leafId === null || (await store.sessions.entry(scope, parent.sessionId, leafId)) !== null;
  const hasRun = (await runs.list({ sessionUid: uid, limit: 1 }, userId)).length > 0;
  if (context === "fork" && isUntouched && !hasRun) return found;
  const error =
    "This call was made before, and its child has gone on since. Look at that session (subagents, sessions_list), or spawn another with a new call.";
  return { status: "error", code: "conflict", error };
}

/** A child that never ran is no child. One that has a run after all, of the same call made elsewhere, stays. */
export async function discardFork(
  { store, runs, report }: BetweenDeps,
  { userId, sessionId, uid }: SessionRecord,
): Promise<void> {
  const scope: Scope = present({ userId });
  try {
    if ((await runs.list({ sessionUid: uid, limit: 1 }, userId)).length > 0) return;
    if (await store.sessions.remove(scope, sessionId)) await store.sessions.purge(scope, sessionId);
  } catch (error) {
    report(error);
  }
}
