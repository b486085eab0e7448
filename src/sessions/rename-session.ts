import type { Scope, SessionRecord, SessionStore } from "../store/contract.ts";

/**
 * Sets the name that is shown; `null` takes it away. It is an entry, so that other programs show it too, and a name among the
 * metadata, which would be shown instead, goes.
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
