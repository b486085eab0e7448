import { SkeinError } from "../../core/errors.ts";
import { isAcpKey } from "../../core/keys.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { Asker } from "../../core/references.ts";
import { contextMeant, findTrashed, refuseTrashed, sessionMeant } from "../../sessions/find-session.ts";
import type { RuntimeContext } from "../../sessions/runtime-context.ts";
import type { EveryUser } from "../../sessions/users.ts";
import type { Scope, SessionRecord, TrashedSession } from "../../store/contract.ts";
import type { Call, FolderApp } from "./dispatch.ts";

/** Which session a call means. Everything goes through the call's scope, so another user's session is simply not there. */

/** For which agent a reference is read; left out: the default one. */
interface Reader {
  readonly agentId?: string | undefined;
}

/** A session as params name it: any reference. */
export type SessionName = Reader & ({ readonly key: string } | { readonly sessionKey: string });

/** The sessions of the call's user; of one agent alone where lists and searches are asked so. */
export function scopeOf({ userId }: Pick<Call, "userId">, agentId?: string): Scope {
  return present({ userId, agentId: agentId === undefined ? null : parseAgentId(agentId) });
}

/** For whom short keys and labels are read. */
export function askerOf({ defaultAgentId, config }: FolderApp, { agentId }: Reader): Asker {
  return { agentId: parseAgentId(agentId ?? defaultAgentId), scope: config.session.scope };
}

/** The session of a reference; `null`: this user has none of the kind. */
export function lookUpSession(
  app: FolderApp,
  { userId }: Pick<Call, "userId">,
  named: SessionName,
  prefix = false,
): Promise<SessionRecord | null> {
  return sessionMeant(app.store, { userId, asker: askerOf(app, named), prefix }, nameOf(named));
}

/** The same where it has to be there. */
export async function findSession(app: FolderApp, call: Call, named: SessionName): Promise<SessionRecord> {
  return (await lookUpSession(app, call, named)) ?? missing(app, call, named, listed);
}

/** The same where params may name one; `null`: they do not. */
export async function findSessionIfNamed(
  app: FolderApp,
  call: Call,
  { sessionKey, agentId }: Reader & { readonly sessionKey?: string | undefined },
): Promise<SessionRecord | null> {
  return sessionKey === undefined ? null : findSession(app, call, { sessionKey, agentId });
}

/** The same in the trash. */
export async function findTrashedSession(
  app: FolderApp,
  call: Call,
  named: SessionName,
): Promise<TrashedSession> {
  const trashed = await app.store.sessions.trashed(scopeOf(call));
  const found = findTrashed(trashed, nameOf(named), askerOf(app, named));
  return found ?? throwNotFound(nameOf(named), "sessions.trash shows what is in the trash");
}

/** Whom a call speaks to: what reads as a key need not be there yet. */
export async function resolveTarget(
  app: FolderApp,
  { userId }: Call,
  named: SessionName,
): Promise<RuntimeContext & { readonly sessionKey: string }> {
  const speaker = { userId, asker: askerOf(app, named), newId: app.newId };
  const meant = await contextMeant(app.store, speaker, nameOf(named));
  const advice = `${listed}; a message creates a session only under a full key`;
  return meant ?? missing(app, { userId }, named, advice);
}

/** Lists over the sessions of every user. */
export function requireEveryUser({ everyUser }: FolderApp): EveryUser {
  if (everyUser !== null) return everyUser;
  throw new SkeinError("unavailable", {
    problem: "This store does not list the sessions of every user",
    advice: "Open Skein with a dir, or name a user",
  });
}

/** A session that was found, as the Skein is asked about it. */
export function contextOf({ userId, agentId, key: sessionKey, sessionId }: SessionRecord): RuntimeContext {
  return { agentId, sessionKey, sessionId, ...present({ userId }) };
}

/** Refuses a name that no session has; one in the trash can be restored. */
async function missing(
  app: FolderApp,
  call: Pick<Call, "userId">,
  named: SessionName,
  advice: string,
): Promise<never> {
  await refuseTrashed(app.store.sessions, scopeOf(call), askerOf(app, named), nameOf(named));
  return throwNotFound(nameOf(named), advice);
}

const listed = "sessions.list shows what is there";

export function throwNotFound(name: string, advice = listed): never {
  throw new SkeinError("not_found", { what: "Session", name, advice });
}

function nameOf(named: SessionName): string {
  return "key" in named ? named.key : named.sessionKey;
}

const reasons = {
  fork: "a fork of our record would lack what the agent itself remembers",
  branch: "what it was told stays in its own memory, wherever our record goes on from",
  settings: "its model and thinking are set when it is spawned",
  create: "a session of it is made by a spawn alone",
} as const;

/** Refuses what a record of somebody else's agent is not for: that agent's memory does not follow. */
export function refuseAcpSession({ key }: { readonly key: string }, what: keyof typeof reasons): void {
  if (!isAcpKey(key)) return;
  const agent = key.split(":")[1] ?? key;
  const advice = "Spawn another session of the agent, with sessions_spawn and what it is to know";
  throw new SkeinError("acp_unsupported", { agent, problem: reasons[what], advice });
}
