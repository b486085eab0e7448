import { SkeinError } from "../core/errors.ts";
import { parseKey } from "../core/keys.ts";
import { present } from "../core/present.ts";
import type { Asker } from "../core/references.ts";
import { displayKey } from "../core/references.ts";
import type { DeletedPayload, PatchedPayload, SessionStatePayload } from "../protocol/session-changes.ts";
import type { Scope, SessionRecord, SessionStore, TrashedSession } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";

/** Only admins see local folders. */
interface StateReader {
  readonly isAdmin: boolean;
}

/** Returns a session in the format used by all methods that change one. */
export function sessionState(record: SessionRecord, { isAdmin }: StateReader): SessionStatePayload {
  const { key, sessionId, kind, version, meta, name, cwd, createdAt, updatedAt } = record;
  return present({
    key,
    sessionId,
    kind,
    version,
    label: meta.label,
    displayName: meta.displayName ?? name,
    archived: meta.archived === true ? true : null,
    cwd: isAdmin ? cwd : null,
    createdAt,
    updatedAt,
  });
}

/** Returns the session with every field that `sessions.patch` can change. */
export function patchedState(record: SessionRecord, reader: StateReader): PatchedPayload {
  const { model, thinkingLevel, verboseLevel, sendPolicy } = record.meta;
  return {
    ...sessionState(record, reader),
    ...present({ model, thinkingLevel, verboseLevel, sendPolicy }),
  };
}

/**
 * Sets the display name, or removes it if `null`. The name is stored as an entry so that other programs show it too. A
 * display name in the metadata is removed because it would take precedence.
 */
export async function nameSession(
  sessions: SessionStore,
  scope: Scope,
  record: SessionRecord,
  text: string | null,
): Promise<SessionRecord> {
  const name = text?.trim() ?? "";
  const draft = { type: "session_info", ...(name === "" ? {} : { name }) } as const;
  await sessions.append(scope, record.sessionId, [{ draft }]);
  if (record.meta.displayName !== undefined)
    return sessions.patch(scope, record.sessionId, { displayName: null });
  return (await sessions.get(scope, record.sessionId)) ?? record;
}

/** `sessions.delete`: moves a session to the trash. Main sessions cannot be deleted. */
export async function removeSession(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: SessionRecord,
  asker: Asker,
): Promise<DeletedPayload> {
  if (parseKey(key).form === "main" || displayKey(key, asker) === "main") {
    throw new SkeinError("forbidden", {
      problem: `${key} is a main session and cannot be deleted`,
      advice: "Reset it to start over, or archive it",
    });
  }
  if (!(await sessions.remove(scope, sessionId))) noSuchSession(sessionId);
  return { key, sessionId, state: "trashed" };
}

/** `sessions.delete` with `purge`: removes a session from the trash permanently. */
export async function purgeSession(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: Pick<TrashedSession, "key" | "sessionId">,
): Promise<DeletedPayload> {
  if (await sessions.purge(scope, sessionId)) return { key, sessionId, state: "purged" };
  throw new SkeinError("conflict", {
    problem: `${sessionId} is no longer in the trash`,
    advice: "List the sessions to see whether it was restored",
  });
}
