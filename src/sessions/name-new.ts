import { formatKey, parseKey } from "../core/keys.ts";
import { parseSessionId } from "../core/names.ts";
import type { Asker } from "../core/references.ts";
import { referenceLookups } from "../core/references.ts";
import type { SessionInit } from "../store/contract.ts";

/** Words that mean a session by themselves, and can name no new one; where all share one, it is called `global`. */
const words = new Set(["current", "global", "unknown"]);

/**
 * Key and id for a new session. A name is a key, a short key, `main`, or else the session id of a named session; without
 * one the id is new. `sessionId` is an id of its own, for keys that do not hold one.
 */
export function nameNew(
  name: string | undefined,
  asker: Asker,
  options: { readonly sessionId?: string | undefined; newId(): string },
): Pick<SessionInit, "key" | "sessionId"> {
  const { agentId, scope } = asker;
  const named = (sessionId: string, text = sessionId) => ({
    key: formatKey({ form: "named", agentId, sessionId: parseSessionId(text) }),
    sessionId: parseSessionId(options.sessionId ?? sessionId),
  });
  if (name === undefined) return named(options.sessionId ?? options.newId());
  const isWord = words.has(name) && !(name === "global" && scope === "global");
  const [lookup] = isWord
    ? []
    : referenceLookups(name, { agentId, ...(scope === undefined ? {} : { scope }) });
  if (lookup?.by !== "key") return name.includes(":") ? { key: formatKey(parseKey(name)) } : named(name);
  const key = parseKey(lookup.key);
  if (key.form === "named" && key.thread === undefined) return { ...named(key.sessionId), key: lookup.key };
  return { key: lookup.key, ...(options.sessionId === undefined ? {} : { sessionId: options.sessionId }) };
}
