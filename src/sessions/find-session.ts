import { SkeinError } from "../core/errors.ts";
import { formatKey, readKey } from "../core/keys.ts";
import type { Asker, Lookup } from "../core/references.ts";
import { displayKey, resolveReference } from "../core/references.ts";
import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";

export type SessionFinder = Pick<SessionStore, "find" | "trashed">;

/**
 * Returns the session that a reference names from a requester's point of view, or `null`. With `prefix`, the beginning
 * of a session ID is sufficient.
 */
export function resolveSession(
  sessions: SessionFinder,
  scope: Scope,
  asker: Asker,
  reference: string,
  options: { readonly prefix?: boolean } = {},
): Promise<SessionRecord | null> {
  return resolveReference(reference, asker, (lookup) => findCurrent(sessions, scope, lookup), options);
}

/** Runs the lookups in order and returns the first session found. */
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

/**
 * Returns a lookup's results. If a reset moved the name, the old session is replaced by the one that has the name now.
 */
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

/** Returns `null` if a reset moved the name and the session that now holds it has been trashed or purged. */
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
  // Covers sessions that were reset before `resetFrom` was recorded.
  const trashed = await sessions.trashed(scope);
  return trashed.some((each) => each.key === key) ? null : session;
}

/** Returns a hint if the named session is in the trash, otherwise `null`. */
async function trashAdvice(
  sessions: Pick<SessionStore, "trashed">,
  scope: Scope,
  asker: Asker,
  name: string,
): Promise<string | null> {
  const trashed = trashedAs(await sessions.trashed(scope), name, asker, { prefix: false });
  return trashed.length === 0 ? null : `It is in the trash. To restore it: skein sessions restore ${name}`;
}

/** Throws if the named session is in the trash. */
export async function refuseTrashed(
  sessions: Pick<SessionStore, "trashed">,
  scope: Scope,
  asker: Asker,
  name: string,
): Promise<void> {
  const advice = await trashAdvice(sessions, scope, asker, name);
  if (advice !== null) throw new SkeinError("not_found", { what: "Session", name, advice });
}

/** The names by which a session in the trash can be found. */
export interface TrashedName {
  readonly key: string;
  readonly sessionId: string;
  readonly label?: string | null;
}

const maxCandidates = 5;

/**
 * Returns the session in the trash that a reference names, or `null` if there is none. Throws `ambiguous` if several
 * sessions had the name. With `prefix`, a unique beginning of a session ID is sufficient.
 */
export function findTrashed<T extends TrashedName>(
  trashed: readonly T[],
  name: string,
  asker: Asker,
  { prefix = false }: { readonly prefix?: boolean } = {},
): T | null {
  const found = trashedAs(trashed, name, asker, { prefix });
  if (found.length > 1) {
    const candidates = found.slice(0, maxCandidates).map(({ sessionId }) => sessionId);
    throw new SkeinError("ambiguous", { name, what: "session", candidates: candidates.join(", ") });
  }
  return found[0] ?? null;
}

/** Returns all sessions in the trash that a reference could name. Stops at the first kind of name that has a match. */
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
    // A reset session keeps its ID, but the ID no longer refers to it.
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
