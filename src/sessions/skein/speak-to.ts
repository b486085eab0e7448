import type { IdSource } from "../../core/ids.ts";
import { present } from "../../core/present.ts";
import type { Asker } from "../../core/references.ts";
import { keyMeant } from "../../core/references.ts";
import type { Scope, SessionRecord, Store } from "../../store/contract.ts";
import { resolveSession } from "../current-session.ts";
import { nameNew } from "../name-new.ts";
import type { RuntimeContext } from "../runtime-context.ts";

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

/** Whom somebody speaks to: what reads as a key need not be there yet, everything else must. `null`: there is no such session. */
export async function contextMeant(
  store: Pick<Store, "sessions">,
  speaker: Speaker,
  reference: string,
): Promise<(RuntimeContext & { readonly sessionKey: string }) | null> {
  const { userId, asker, newId } = speaker;
  const known = await sessionMeant(store, speaker, reference);
  if (known !== null) return { userId, sessionKey: known.key, sessionId: known.sessionId };
  const meant = keyMeant(reference, asker);
  if (meant === null) return null;
  const { key, sessionId } = nameNew(meant, asker, { newId });
  return { userId, sessionKey: key, ...present({ sessionId }) };
}
