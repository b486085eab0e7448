import { SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import { formatKey, readKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { Asker, Lookup } from "../core/references.ts";
import { displayKey, resolveReference } from "../core/references.ts";
import type { Scope, SessionRecord, SessionStore, Store } from "../store/contract.ts";

/** The way from a name to the session that it means now, for every door. */

export type SessionFinder = Pick<SessionStore, "find" | "trashed">;

/** The session that a reference means for an asker; `null`: none. `prefix`: the beginning of a session ID is a reference too. */
export function resolveSession(
  sessions: SessionFinder,
  scope: Scope,
  asker: Asker,
  reference: string,
  options: { readonly prefix?: boolean } = {},
): Promise<SessionRecord | null> {
  return resolveReference(reference, asker, (lookup) => findCurrent(sessions, scope, lookup), options);
}

/** The first session that one of the lookups finds. */
export async function firstFound(
  sessions: SessionFinder,
  scope: Scope,
  lookups: readonly Lookup[],
): Promise<SessionRecord | null> {
  for (const lookup of lookups) {
    const [found] = await findCurrent(sessions, scope, lookup);
    if (found !== undefined) return found;
  }
  return null;
}

/** What a lookup finds. A session that gave up its name in a reset is not found by that name: the one that has it now is. */
export async function findCurrent(
  sessions: SessionFinder,
  scope: Scope,
  lookup: Lookup,
): Promise<readonly SessionRecord[]> {
  const found = await sessions.find(scope, lookup);
  if (lookup.by !== "sessionId" && lookup.by !== "prefix") return found;
  const current = await Promise.all(found.map((session) => holderOf(sessions, scope, session)));
  return [...new Map(current.flatMap((each) => (each === null ? [] : [[each.uid, each]]))).values()];
}

/** `null`: the session had this name before a reset, and the one that got it is in the trash or purged. */
async function holderOf(
  sessions: SessionFinder,
  scope: Scope,
  session: SessionRecord,
): Promise<SessionRecord | null> {
  const parsed = readKey(session.key);
  if ("problem" in parsed || parsed.form !== "reset") return session;
  const { agentId, sessionId } = parsed;
  const key = formatKey({ form: "named", agentId, sessionId });
  const { resetFrom } = session.meta;
  if (resetFrom !== undefined && resetFrom !== key) return session;
  const [holder] = await sessions.find(scope, { by: "key", key });
  if (holder !== undefined) return holder;
  if (resetFrom === key) return null;
  // Sessions that were reset before `resetFrom` was kept.
  const trashed = await sessions.trashed(scope);
  return trashed.some((each) => each.key === key) ? null : session;
}

/** Advice for a name that no session has; `null`: it is not in the trash either. */
export async function trashAdvice(
  sessions: Pick<SessionStore, "trashed">,
  scope: Scope,
  asker: Asker,
  name: string,
): Promise<string | null> {
  const trashed = trashedAs(await sessions.trashed(scope), name, asker, { prefix: false });
  return trashed.length === 0 ? null : `It is in the trash: skein sessions restore ${name}`;
}

/** Throws where a message cannot go to the session of this name because that one is in the trash. */
export async function refuseTrashed(
  sessions: Pick<SessionStore, "trashed">,
  scope: Scope,
  asker: Asker,
  name: string,
): Promise<void> {
  const advice = await trashAdvice(sessions, scope, asker, name);
  if (advice !== null) throw new SkeinError("not_found", { what: "Session", name, advice });
}

/** As much of a session in the trash as it is found by. */
export interface TrashedName {
  readonly key: string;
  readonly sessionId: string;
  readonly label?: string | null;
}

const mostCandidates = 5;

/**
 * The one in the trash that a reference means; `null`: none does. Several may have had one key, and then the session id is wanted.
 * `prefix`: a unique beginning of a session id will do.
 */
export function findTrashed<T extends TrashedName>(
  trashed: readonly T[],
  name: string,
  asker: Asker,
  { prefix = false }: { readonly prefix?: boolean } = {},
): T | null {
  const found = trashedAs(trashed, name, asker, { prefix });
  if (found.length > 1) {
    const candidates = found.slice(0, mostCandidates).map(({ sessionId }) => sessionId);
    throw new SkeinError("ambiguous", { name, what: "session", candidates: candidates.join(", ") });
  }
  return found[0] ?? null;
}

/** All that it could mean: by the first way that finds any. */
export function trashedAs<T extends TrashedName>(
  trashed: readonly T[],
  name: string,
  asker: Asker,
  { prefix = true }: { readonly prefix?: boolean } = {},
): readonly T[] {
  const lowered = name.toLowerCase();
  const hasId = ({ sessionId }: T) => sessionId.toLowerCase() === lowered;
  const ways: ((each: T) => boolean)[] = [
    ({ key }) => key === name || displayKey(key, asker) === name,
    // A session that was reset keeps its ID, but no longer goes by it where another one has the name.
    (each) => hasId(each) && formOf(each.key) !== "reset",
    ({ key }) => displayKey(key, asker) === `session:${name}`,
    hasId,
    ({ label }) => label === name,
    ({ sessionId }) => prefix && sessionId.toLowerCase().startsWith(lowered),
  ];
  for (const way of ways) {
    const found = trashed.filter(way);
    if (found.length > 0) return found;
  }
  return [];
}

function formOf(key: string): string | null {
  const parsed = readKey(key);
  return "problem" in parsed ? null : parsed.form;
}

export interface Speaker {
  readonly userId: string | null;
  readonly asker: Asker;
  /** Where references are looked up; left out: among all sessions of the user. */
  readonly scope?: Scope;
  /** Beginnings of session ids are references too. */
  readonly prefix?: boolean;
  readonly newId: IdSource;
}

/** The session that a reference means for a speaker; `null`: none. */
export function sessionMeant(
  { sessions }: Pick<Store, "sessions">,
  { userId, asker, scope = present({ userId }), prefix = false }: Omit<Speaker, "newId">,
  reference: string,
): Promise<SessionRecord | null> {
  return resolveSession(sessions, scope, asker, reference, { prefix });
}
