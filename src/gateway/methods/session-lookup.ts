import { SkeinError } from "../../core/errors.ts";
import { isAcpKey } from "../../core/keys.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Asker } from "../../core/references.ts";
import { findTrashed, refuseTrashed, resolveSession } from "../../sessions/find-session.ts";
import type { MessageTarget } from "../../sessions/resolve-context.ts";
import { resolveMessageTarget } from "../../sessions/resolve-context.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { Scope, SessionRecord, TrashedSession } from "../../store/contract.ts";
import type { EveryUser } from "../../store/work.ts";
import type { Call, FolderApp } from "./dispatch.ts";

/** Resolves sessions for the call's user. Other users' sessions are never found. */

/** The agent that references are resolved for. Defaults to the default agent. */
interface Reader {
  readonly agentId?: string | undefined;
}

/** A session reference in a method's params. */
export type SessionName = Reader & ({ readonly key: string } | { readonly sessionKey: string });

/** Returns the scope that covers the sessions of the call's user, limited to one agent if `agentId` is given. */
export function scopeOf({ userId }: Pick<Call, "userId">, agentId?: string): Scope {
  return present({ userId, agentId: agentId === undefined ? null : parseAgentId(agentId) });
}

/** Returns the agent that short keys and labels are resolved for. */
export function askerOf(
  { agents, config }: Pick<FolderApp, "agents" | "config">,
  { agentId }: Reader,
): Asker {
  return { agentId: parseAgentId(agentId ?? agents.first), scope: config.session.scope };
}

/** Returns `null` if the user has no such session. */
export function lookUpSession(
  app: FolderApp,
  { userId }: Pick<Call, "userId">,
  named: SessionName,
  prefix = false,
): Promise<SessionRecord | null> {
  return resolveSession(app.store.sessions, scopeOf({ userId }), askerOf(app, named), nameOf(named), {
    prefix,
  });
}

/** Like `lookUpSession`, but throws `not_found`. */
export async function findSession(app: FolderApp, call: Call, named: SessionName): Promise<SessionRecord> {
  return (await lookUpSession(app, call, named)) ?? missing(app, call, named, listed);
}

/** Returns `null` if the params name no session. */
export async function findSessionIfNamed(
  app: FolderApp,
  call: Call,
  { sessionKey, agentId }: Reader & { readonly sessionKey?: string | undefined },
): Promise<SessionRecord | null> {
  return sessionKey === undefined ? null : findSession(app, call, { sessionKey, agentId });
}

/** Finds a session in the trash. */
export async function findTrashedSession(
  app: FolderApp,
  call: Call,
  named: SessionName,
): Promise<TrashedSession> {
  const trashed = await app.store.sessions.trashed(scopeOf(call));
  const found = findTrashed(trashed, nameOf(named), askerOf(app, named));
  return found ?? throwNotFound(nameOf(named), "Use sessions.trash to see what is in the trash");
}

/** Resolves the target of a message. A full key can name a session that does not exist yet. */
export async function resolveTarget(
  app: FolderApp,
  { userId }: Call,
  named: SessionName,
): Promise<MessageTarget> {
  const speaker = { userId, asker: askerOf(app, named), newId: app.newId };
  const target = await resolveMessageTarget(app.store, speaker, nameOf(named));
  const advice = `${listed}. A message can create a session only under a full key`;
  return target ?? missing(app, { userId }, named, advice);
}

/** Throws if the store cannot list the sessions of every user. */
export function requireEveryUser({ store }: FolderApp): EveryUser {
  if (store.work.everyUser !== undefined) return store.work.everyUser;
  throw new SkeinError("unavailable", {
    problem: "This store cannot list all users' sessions",
    advice: "Open Skein with a dir, or name a user",
  });
}

export function contextOf({ userId, agentId, key: sessionKey, sessionId }: SessionRecord): RuntimeContext {
  return { agentId, sessionKey, sessionId, ...present({ userId }) };
}

/** Throws `not_found`. If the session is in the trash, the message says so. */
async function missing(
  app: FolderApp,
  call: Pick<Call, "userId">,
  named: SessionName,
  advice: string,
): Promise<never> {
  await refuseTrashed(app.store.sessions, scopeOf(call), askerOf(app, named), nameOf(named));
  return throwNotFound(nameOf(named), advice);
}

const listed = "Use sessions.list to find existing sessions";

export function throwNotFound(name: string, advice = listed): never {
  throw new SkeinError("not_found", { what: "Session", name, advice });
}

function nameOf(named: SessionName): string {
  return "key" in named ? named.key : named.sessionKey;
}

const reasons = {
  fork: "a fork would lack what the agent itself remembers",
  branch: "the agent keeps its own memory, which would not follow the move",
  settings: "its model and thinking level are set when it is spawned",
  create: "only a spawn can create a session for it",
} as const;

/**
 * Rejects a change that an ACP session does not support, because the agent's own memory would not reflect the change.
 */
export function refuseAcpSession({ key }: { readonly key: string }, what: keyof typeof reasons): void {
  if (!isAcpKey(key)) return;
  const agent = key.split(":")[1] ?? key;
  const advice = "Spawn another session with sessions_spawn, and pass the agent everything it needs to know";
  throw new SkeinError("acp_unsupported", { agent, problem: reasons[what], advice });
}
