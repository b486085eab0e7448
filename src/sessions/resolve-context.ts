import { SkeinError } from "../core/errors.ts";
import type { IdSource } from "../core/ids.ts";
import type { ParsedKey } from "../core/keys.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { parseAgentId, parseSessionId } from "../core/names.ts";
import { present } from "../core/present.ts";
import type { Asker } from "../core/references.ts";
import { keyOfReference, referenceLookups } from "../core/references.ts";
import type { SessionRef } from "../core/session-ref.ts";
import type { SessionInit, SessionRecord, Store } from "../store/contract.ts";
import type { App } from "./app.ts";
import { resolveSession } from "./find-session.ts";
import type { Delivery, RuntimeContext } from "./runtime-context.ts";
import { chosenCwd } from "./runtime-context.ts";

/** The session that a call addresses, with every field of its context resolved. The session might not exist yet. */
export interface SessionTarget extends Pick<SessionRef, "userId" | "agentId" | "key"> {
  /** `null` means the ID of the session that currently holds the key, or a new one if there is none. */
  readonly sessionId: string | null;
  readonly channel: string | null;
  readonly delivery: Delivery | null;
  /**
   * Read this only when creating a session, because it accesses the file system. A folder given by the caller has
   * already been checked.
   */
  readonly cwd: string;
}

type ContextApp = Pick<App, "spaces" | "agents" | "config" | "files">;

/**
 * Resolves a context. The agent is `agentId`, otherwise the agent in the key, otherwise the default agent. The key is
 * `sessionKey`, otherwise the key derived from `sessionId`, otherwise the key of the agent's main session, or `global`
 * if all senders share one session. The folder is `cwd`, otherwise the agent's default folder. Throws
 * `invalid_arguments` if the agent is not allowed to work in `cwd`. A session that exists under another key is found
 * later by its ID.
 */
export function resolveSessionTarget(app: ContextApp, context: RuntimeContext): SessionTarget {
  const { spaces, files } = app;
  const userId = spaces.enter(context);
  const sessionId = mapped(context.sessionId, parseSessionId);
  const given = mapped(context.sessionKey, (text) => givenKey(text, app));
  const agentId = agentOf(mapped(context.agentId, parseAgentId), given, app);
  const key = given ?? impliedKey(agentId, sessionId, app);
  const wanted = context.cwd ?? null;
  const chooseCwd = () =>
    chosenCwd(wanted, (path) => files.resolveCwd({ userId, agentId }, path, "operator"));
  if (wanted !== null) chooseCwd();
  const delivery = mapped(context.delivery, (each) => Object.freeze({ ...each }));
  return Object.freeze({
    userId,
    agentId,
    key: formatKey(key),
    sessionId,
    channel: context.channel ?? delivery?.channel ?? channelOf(key),
    delivery,
    get cwd() {
      return chooseCwd();
    },
  });
}

function givenKey(text: string, { config }: ContextApp): ParsedKey {
  const key = parseKey(text);
  const { scope } = config.session;
  if (key.form !== "special" || (key.name === "global" && scope === "global")) return key;
  const problem =
    key.name === "global" ? "each sender has separate sessions here" : "it does not name a session";
  throw new SkeinError("invalid_key", {
    key: text,
    problem,
    expected: "the key of a session, for example agent:main:main",
  });
}

/** Rejects a key that belongs to another agent, because its session would be written to the wrong folder. */
function agentOf(agentId: string | null, key: ParsedKey | null, { agents }: ContextApp): string {
  const ofKey = key === null || key.form === "special" ? null : key.agentId;
  if (agentId !== null && ofKey !== null && agentId !== ofKey) {
    const problem = `The session key belongs to the agent "${ofKey}", not to "${agentId}"`;
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Omit the agent, or name the key's own agent",
    });
  }
  return agentId ?? ofKey ?? parseAgentId(agents.first);
}

function impliedKey(agentId: string, sessionId: string | null, { config }: ContextApp): ParsedKey {
  if (sessionId !== null) return { form: "named", agentId, sessionId };
  return config.session.scope === "global" ? { form: "special", name: "global" } : { form: "main", agentId };
}

function channelOf(key: ParsedKey): string | null {
  return key.form === "direct" || key.form === "group" ? (key.channel ?? null) : null;
}

function mapped<T, U>(value: T | null | undefined, map: (value: T) => U): U | null {
  return value === null || value === undefined ? null : map(value);
}

/** The session that a message addresses. */
export interface MessageTarget {
  readonly context: RuntimeContext & { readonly sessionKey: string };
  /** The session if it had to be looked up. */
  readonly session: SessionRecord | null;
}

/**
 * Resolves a message's target. A full key is not looked up, because its session might not exist yet. Any other
 * reference must name an existing session. Returns `null` if it does not.
 */
export async function resolveMessageTarget(
  { sessions }: Pick<Store, "sessions">,
  {
    userId,
    asker,
    newId,
  }: { readonly userId: string | null; readonly asker: Asker; readonly newId: IdSource },
  reference: string,
): Promise<MessageTarget | null> {
  const key = keyOfReference(reference, asker);
  const isFullKey = key !== null && key !== "global" && referenceLookups(reference, asker).length === 1;
  const session = isFullKey ? null : await resolveSession(sessions, present({ userId }), asker, reference);
  if (session !== null)
    return { context: { userId, sessionKey: session.key, sessionId: session.sessionId }, session };
  if (key === null) return null;
  const named = nameNewSession(key, asker, { newId });
  return {
    context: { userId, sessionKey: named.key, ...present({ sessionId: named.sessionId }) },
    session: null,
  };
}

/**
 * References with a fixed meaning. They cannot name a new session, except `global` when all senders share one session.
 */
const reservedNames = new Set(["current", "global", "unknown"]);

/**
 * Returns the key and ID for a new session. A name can be a key, a short key, `main`, or the ID of a named session. If
 * there is no name, the ID is generated. `sessionId` sets the ID for keys that do not contain one.
 */
export function nameNewSession(
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
  const isReserved = reservedNames.has(name) && !(name === "global" && scope === "global");
  const [lookup] = isReserved
    ? []
    : referenceLookups(name, { agentId, ...(scope === undefined ? {} : { scope }) });
  if (lookup?.by !== "key") return name.includes(":") ? { key: formatKey(parseKey(name)) } : named(name);
  const key = parseKey(lookup.key);
  if (key.form === "named" && key.thread === undefined) return { ...named(key.sessionId), key: lookup.key };
  return { key: lookup.key, ...(options.sessionId === undefined ? {} : { sessionId: options.sessionId }) };
}
