import { SkeinError } from "./errors.ts";
import type { ParsedKey } from "./keys.ts";
import { formatKey, kindOf, parseKey, readKey } from "./keys.ts";
import { readAgentId, sessionIdProblem } from "./names.ts";

/** The caller that a reference is resolved for: an agent, and its session if there is one. */
export interface Asker {
  readonly agentId: string;
  /** The caller's own session, which `current` refers to. */
  readonly key?: string;
  /** With `global`, `main` refers to the one session that all senders share. */
  readonly scope?: "per-sender" | "global";
}

/** One lookup among the user's sessions. */
export type Lookup =
  | { readonly by: "key"; readonly key: string }
  | { readonly by: "spawnId"; readonly spawnId: string }
  /** Session IDs are case-insensitive. */
  | { readonly by: "sessionId"; readonly sessionId: string }
  /** The uid of a session never changes. */
  | { readonly by: "uid"; readonly uid: string }
  | { readonly by: "label"; readonly label: string; readonly agentId: string }
  | { readonly by: "prefix"; readonly prefix: string };

/**
 * Returns the short form of a key, as this caller would write it. `resolveReference` resolves it to the same key.
 *
 * @example
 * ```ts
 * import { displayKey } from "skein";
 * displayKey("agent:main:cron:daily", { agentId: "main" }); // "cron:daily"
 * displayKey("agent:other:main", { agentId: "main" }); // "agent:other:main"
 * ```
 */
export function displayKey(key: string, asker: Asker): string {
  return displayFor(parseKey(key), canonical(asker));
}

function displayFor(parsed: ParsedKey, asker: Asker): string {
  const key = formatKey(parsed);
  if (parsed.form === "special") return key === mainKey(asker) ? "main" : key;
  if (parsed.form === "subagent" && parsed.thread === undefined) return `subagent:${parsed.spawnId}`;
  if (key === mainKey(asker)) return "main";
  const prefix = `agent:${asker.agentId}:`;
  if (parsed.agentId !== asker.agentId || !hasShortForm(parsed)) return key;
  const short = key.slice(prefix.length);
  // A channel can be named "agent", in which case the short form would be parsed as another agent's key.
  return short.startsWith("agent:") ? key : short;
}

/** Returns the lookups for a reference, most specific first. Empty if the reference cannot match anything. */
export function referenceLookups(text: string, who: Asker, options: { prefix?: boolean } = {}): Lookup[] {
  const asker = canonical(who);
  if (text === "current") return asker.key === undefined ? [] : [{ by: "key", key: asker.key }];
  if (text === "main") return [{ by: "key", key: mainKey(asker) }];
  if (text === "" || text === "unknown") return [];
  const key = readKey(text);
  // Text that can be parsed as a key is never a label.
  if (!("problem" in key)) return [{ by: "key", key: formatKey(key) }];
  const lookups: Lookup[] = displayLookups(text, asker);
  if (sessionIdProblem(text) === null) lookups.push(...sessionIdLookups(text, asker.agentId));
  lookups.push({ by: "label", label: text, agentId: asker.agentId });
  if (options.prefix === true && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(text)) {
    lookups.push({ by: "prefix", prefix: text });
  }
  return lookups;
}

/** Returns the full key for a reference that is a key or a short key, or `null` if it is an ID or a label. */
export function keyOfReference(reference: string, asker: Asker): string | null {
  const whole = readKey(reference);
  if (!("problem" in whole) && whole.form !== "special") return formatKey(whole);
  const [lookup] = referenceLookups(reference, asker);
  const isKey = reference === "main" || reference.includes(":");
  return lookup?.by === "key" && isKey ? lookup.key : null;
}

/**
 * Returns the lookups for a session ID. The key that contains the ID comes first, because after a reset a different
 * session has that key, while the old session keeps the ID.
 */
export function sessionIdLookups(sessionId: string, agentId: string): Lookup[] {
  const isAgent = readAgentId(agentId) !== null;
  return [
    ...(isAgent ? [{ by: "key", key: formatKey({ form: "named", agentId, sessionId }) } as const] : []),
    { by: "sessionId", sessionId },
    { by: "uid", uid: sessionId },
  ];
}

/**
 * Finds the session that a reference refers to. The first lookup that finds a session wins. Returns `null` if there is
 * none. Throws `ambiguous` if a lookup finds several sessions.
 *
 * @example
 * ```ts
 * import { resolveReference } from "skein";
 * const sessions = [{ key: "agent:main:session:trip", sessionId: "trip" }];
 * const found = await resolveReference("trip", { agentId: "main" }, (lookup) =>
 *   lookup.by === "sessionId" ? sessions.filter((each) => each.sessionId === lookup.sessionId) : [],
 * );
 * ```
 */
export async function resolveReference<T extends { readonly key: string }>(
  text: string,
  asker: Asker,
  find: (lookup: Lookup) => readonly T[] | Promise<readonly T[]>,
  options: { prefix?: boolean } = {},
): Promise<T | null> {
  for (const lookup of referenceLookups(text, asker, options)) {
    const found = await find(lookup);
    if (found.length > 1) {
      const keys = found.slice(0, 5).map((each) => each.key);
      const shown = keys.map((key) => displayKey(key, asker));
      const candidates = new Set(shown).size === keys.length ? shown : keys;
      throw new SkeinError("ambiguous", { name: text, what: "session", candidates: candidates.join(", ") });
    }
    if (found[0] !== undefined) return found[0];
  }
  return null;
}

/** Converts agent ID and key to their stored form. */
function canonical(asker: Asker): Asker {
  const agentId = readAgentId(asker.agentId) ?? asker.agentId;
  if (asker.key === undefined) return { ...asker, agentId };
  const key = readKey(asker.key);
  return { ...asker, agentId, key: "problem" in key ? asker.key : formatKey(key) };
}

function mainKey(asker: Asker): string {
  return asker.scope === "global" ? "global" : `agent:${asker.agentId}:main`;
}

function hasShortForm(key: ParsedKey): boolean {
  return key.form === "named" || ["cron", "hook", "node", "group"].includes(kindOf(key));
}

function displayLookups(text: string, asker: Asker): Lookup[] {
  const spawn = /^subagent:([^:]+)$/.exec(text)?.[1];
  if (spawn !== undefined) return [{ by: "spawnId", spawnId: spawn }];
  if (!text.includes(":") || readAgentId(asker.agentId) === null) return [];
  const own = readKey(`agent:${asker.agentId}:${text}`);
  return !("problem" in own) && hasShortForm(own) ? [{ by: "key", key: formatKey(own) }] : [];
}
