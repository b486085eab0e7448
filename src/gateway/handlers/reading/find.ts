import { SkeinError } from "../../../core/errors.ts";
import { parseAgentId } from "../../../core/names.ts";
import { present } from "../../../core/present.ts";
import type { Asker, Lookup } from "../../../core/references.ts";
import { resolveReference } from "../../../core/references.ts";
import { listedSession } from "../../../sessions/list-sessions.ts";
import type { ListedSession, Scope, SessionRecord } from "../../../store/contract.ts";
import { digestOfTree } from "../../../store/digest.ts";
import type { Call, FolderDeps } from "../../calls/contract.ts";

/** Which session a call means. Everything goes through the call's scope, so another user's session is simply not there. */

export interface Named {
  /** Any reference. */
  readonly key: string;
  readonly agentId?: string;
}

/** The sessions of the call's user; of one agent alone where lists and searches are asked so. */
export function scopeOf({ userId }: Call, agentId?: string): Scope {
  return present({ userId, agentId: agentId === undefined ? null : parseAgentId(agentId) });
}

export function askerFor({ defaultAgentId, config }: FolderDeps, agentId = defaultAgentId): Asker {
  return { agentId: parseAgentId(agentId), scope: config.session.scope };
}

/** The session of a reference; `null`: this user has none of the kind. */
export function lookFor(
  deps: FolderDeps,
  call: Call,
  { key, agentId }: Named,
  prefix = false,
): Promise<SessionRecord | null> {
  const find = (lookup: Lookup) => deps.store.sessions.find(scopeOf(call), lookup);
  return resolveReference(key, askerFor(deps, agentId), find, { prefix });
}

export async function findSession(deps: FolderDeps, call: Call, named: Named): Promise<SessionRecord> {
  return (await lookFor(deps, call, named)) ?? notThere(named.key);
}

export function notThere(name: string): never {
  throw new SkeinError("not_found", { what: "Session", name, advice: "sessions.list shows what is there" });
}

/** With what its entries come to, read where the index does not have it yet. */
export async function findListed(deps: FolderDeps, call: Call, named: Named): Promise<ListedSession> {
  const session = await findSession(deps, call, named);
  const listed = await listedSession(deps.store.sessions, session);
  if (listed !== null) return listed;
  return { ...session, digest: digestOfTree(await deps.readTree(session), session.createdAt) };
}
