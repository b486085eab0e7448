import { SkeinError } from "../core/errors.ts";
import { parseKey } from "../core/keys.ts";
import type { Asker } from "../core/references.ts";
import { displayKey } from "../core/references.ts";
import type { DeletedPayload } from "../protocol/session-changes.ts";
import type { Scope, SessionRecord, SessionStore, TrashedSession } from "../store/contract.ts";
import { noSuchSession } from "../store/rules.ts";

/** `sessions.delete`: into the trash. A main session is where everything arrives that has no other place. */
export async function removeSession(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: SessionRecord,
  asker: Asker,
): Promise<DeletedPayload> {
  if (parseKey(key).form === "main" || displayKey(key, asker) === "main") {
    throw new SkeinError("forbidden", {
      problem: `${key} is a main session and is not deleted`,
      advice: "Reset it to begin anew, or archive it",
    });
  }
  if (!(await sessions.remove(scope, sessionId))) noSuchSession(sessionId);
  return { key, sessionId, state: "trashed" };
}

/** `sessions.delete` with `purge`: out of the trash, for good. */
export async function purgeSession(
  sessions: SessionStore,
  scope: Scope,
  { key, sessionId }: Pick<TrashedSession, "key" | "sessionId">,
): Promise<DeletedPayload> {
  if (await sessions.purge(scope, sessionId)) return { key, sessionId, state: "purged" };
  throw new SkeinError("conflict", {
    problem: `${sessionId} is no longer in the trash`,
    advice: "The list of sessions shows whether somebody restored it",
  });
}
