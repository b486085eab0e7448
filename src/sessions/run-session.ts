import type { Config } from "../config/sections/all.ts";
import { SkeinError } from "../core/errors.ts";
import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { Script } from "../core/script.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { spaceOf } from "../core/space.ts";
import type { ParentPlace } from "../file-access/file-boundary.ts";
import type { SessionRecord } from "../store/contract.ts";
import type { AgentProfile } from "./agents.ts";
import type { App } from "./app.ts";
import { isSandboxed } from "./session-access.ts";

/** Returns the agent that answers in a session, or `null` if it is neither configured nor defined. */
export function agentFor(
  { agents, acp }: Pick<App, "agents" | "acp">,
  session: Pick<SessionRecord, "agentId" | "key">,
): AgentProfile | null {
  return isAcpKey(session.key) ? acp.profile(session) : agents.find(session.agentId);
}

/** Whether a session's model is allowed to see local paths. */
export function canSeePaths(app: Pick<App, "agents" | "config">, session: SessionRecord): boolean {
  return spaceOf(session.userId).userId === null && !isSandboxed(app, session);
}

/** Returns the timeout and the retry limit for model requests. */
export function modelLimits({ retries }: Pick<Config, "retries">) {
  return { stallMs: retries.stallSeconds * 1000, maxRetries: retries.max };
}

/** Throws `conflict` while a run is active in the session. A fence can run it under the session's lock. */
export function* checkIdle(
  { attendant }: Pick<App["runs"], "attendant">,
  session: SessionRecord,
): Script<true> {
  try {
    yield* attendant.branch(sessionRefOf(session));
    return true;
  } catch (error) {
    const problem = `The session ${session.sessionId} has an active run`;
    const advice = "Wait for the run to end, or abort it";
    throw new SkeinError("conflict", { problem, advice }, { cause: error });
  }
}

type DirectoryApp = Pick<App, "files"> & { readonly store: Pick<App["store"], "sessions"> };

/** Stops if damaged metadata contains a cycle of parents. */
const maxAncestors = 16;

/**
 * Returns the session with the folder in which it is currently allowed to work. This can differ from the recorded
 * folder.
 */
export async function withWorkingDirectory(
  app: DirectoryApp,
  session: SessionRecord,
): Promise<SessionRecord> {
  return { ...session, cwd: await workingDirectoryOf(app, session, maxAncestors) };
}

async function workingDirectoryOf(
  app: DirectoryApp,
  session: SessionRecord,
  ancestors: number,
): Promise<string> {
  const { userId, agentId, sessionId, cwd } = session;
  const parent = await parentPlace(app, session, ancestors);
  return app.files.cwdOf({ userId, agentId, sessionId, cwd, parent });
}

async function parentPlace(
  app: DirectoryApp,
  { userId, meta }: SessionRecord,
  ancestors: number,
): Promise<ParentPlace | null> {
  if (meta.spawnedBy === undefined || ancestors === 0) return null;
  const [parent] = await app.store.sessions.find(present({ userId }), { by: "key", key: meta.spawnedBy });
  if (parent === undefined) return null;
  return { agentId: parent.agentId, cwd: await workingDirectoryOf(app, parent, ancestors - 1) };
}
