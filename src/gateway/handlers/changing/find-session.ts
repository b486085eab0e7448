import { SkeinError } from "../../../core/errors.ts";
import { parseAgentId } from "../../../core/names.ts";
import { present } from "../../../core/present.ts";
import type { Asker } from "../../../core/references.ts";
import { resolveReference } from "../../../core/references.ts";
import { findTrashed } from "../../../sessions/find-trashed.ts";
import type { Scope, SessionRecord, TrashedSession } from "../../../store/contract.ts";
import type { Call, FolderDeps } from "../../calls/contract.ts";

/** A session as params name it. */
export interface Named {
  readonly key: string;
  readonly agentId?: string;
}

/** The sessions of the call's user, and of nobody else. */
export function scopeOf({ userId }: Call): Scope {
  return present({ userId });
}

/** For whom short keys and labels are read. */
export function askerOf(
  { defaultAgentId, config }: FolderDeps,
  { agentId }: { readonly agentId?: string },
): Asker {
  return { agentId: parseAgentId(agentId ?? defaultAgentId), scope: config.session.scope };
}

/** The session that is meant. Another user's is as one that is not there. */
export async function findSession(deps: FolderDeps, params: Named, call: Call): Promise<SessionRecord> {
  const scope = scopeOf(call);
  const found = await resolveReference(params.key, askerOf(deps, params), (lookup) =>
    deps.store.sessions.find(scope, lookup),
  );
  return found ?? notFound(params.key, "sessions.list shows what is there");
}

/** The same in the trash. */
export async function findRemoved(deps: FolderDeps, params: Named, call: Call): Promise<TrashedSession> {
  const trashed = await deps.store.sessions.trashed(scopeOf(call));
  const found = findTrashed(trashed, params.key, askerOf(deps, params));
  return found ?? notFound(params.key, "sessions.trash shows what is in the trash");
}

function notFound(name: string, advice: string): never {
  throw new SkeinError("not_found", { what: "Session", name, advice });
}
