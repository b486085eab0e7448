import type { Config } from "../config/sections/all.ts";
import { SkeinError } from "../core/errors.ts";
import { isAcpKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import { sessionRefOf } from "../core/session-ref.ts";
import { spaceOf } from "../core/space.ts";
import type { FileBoundary, ParentPlace } from "../file-access/file-boundary.ts";
import type { Run } from "../runs/contract.ts";
import type { Scope, SessionRecord, Store } from "../store/contract.ts";
import { scopeOfSession } from "../store/rules.ts";
import { contextIn } from "../store/spaces.ts";
import type { AgentProfile } from "./agents.ts";
import type { App } from "./app.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { isSandboxed } from "./session-access.ts";

/** The session of a run, with the scope that the store takes and the context that hooks get. */
export interface RunPlace {
  readonly scope: Scope & { readonly agentId: string };
  readonly session: SessionRecord;
  readonly ctx: RuntimeContext;
}

/** `run` null: no run is open. */
export function runPlace({ store }: Pick<App, "store">, session: SessionRecord, run: Run | null): RunPlace {
  const { userId, agentId, key, sessionId, cwd, meta } = session;
  const deliverTo = run?.options.deliverTo;
  const ctx = {
    ...contextIn(store, userId),
    agentId,
    sessionKey: key,
    sessionId,
    cwd,
    channel: deliverTo?.channel ?? meta.channel ?? null,
    delivery: deliverTo ?? meta.delivery ?? null,
  };
  return { scope: scopeOfSession(session), session, ctx };
}

/** The agent that answers in a session; `null`: it is neither configured nor defined. */
export function agentFor(
  { agents, acp }: Pick<App, "agents" | "acp">,
  session: Pick<SessionRecord, "agentId" | "key">,
): AgentProfile | null {
  return isAcpKey(session.key) ? acp.profile(session) : agents.find(session.agentId);
}

/** Whether the model of a session may learn where files are on this machine. */
export function canSeePaths(app: Pick<App, "agents" | "config">, session: SessionRecord): boolean {
  return spaceOf(session.userId).userId === null && !isSandboxed(app, session);
}

/** How long a model may be silent, and how often it is asked again. */
export function modelLimits({ retries }: Pick<Config, "retries">) {
  return { stallMs: retries.stallSeconds * 1000, maxRetries: retries.max };
}

/** Throws `conflict` while a run has the session. */
export function checkIdle({ attendant }: Pick<App["runs"], "attendant">, session: SessionRecord): void {
  try {
    attendant.branch(sessionRefOf(session));
  } catch (error) {
    const problem = `The session ${session.sessionId} is being answered`;
    const advice = "Wait for the end of the run, or abort it";
    throw new SkeinError("conflict", { problem, advice }, { cause: error });
  }
}

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
