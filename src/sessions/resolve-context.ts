import { SkeinError } from "../core/errors.ts";
import type { ParsedKey } from "../core/keys.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { parseAgentId, parseSessionId } from "../core/names.ts";
import { present } from "../core/present.ts";
import type { Asker } from "../core/references.ts";
import { keyMeant, referenceLookups } from "../core/references.ts";
import type { SessionInit, SessionRecord, Store } from "../store/contract.ts";
import type { App } from "./app.ts";
import type { Speaker } from "./find-session.ts";
import { sessionMeant } from "./find-session.ts";
import type { Delivery, RuntimeContext } from "./runtime-context.ts";
import { chosenCwd } from "./runtime-context.ts";

/** A context with nothing left open. Frozen; what it was made from is not kept. */
export interface ResolvedContext {
  /** As stores and runs know it, with the space that the call is made in. `null`: the unnamed user. */
  readonly userId: string | null;
  readonly agentId: string;
  readonly sessionKey: string;
  /** `null`: the one that the key has now, or a new one. */
  readonly sessionId: string | null;
  readonly store: Store | string;
  readonly channel: string | null;
  readonly delivery: Delivery | null;
  /** Asks the file system, so it is read only where a session is created. A folder that was given has been checked. */
  readonly cwd: string;
}

/** What a context is completed from. */
type ContextApp = Pick<App, "spaces" | "agents" | "store" | "config" | "files">;

/**
 * Fills in what a context leaves open. The agent: the given one, else the key's, else the default. The key: the given
 * one, else that of the session id (a session that exists under another key is looked up before), else the agent's
 * main. The folder: the given one if the agent may work there, else the agent's default.
 */
export function resolveRuntimeContext(app: ContextApp, context: RuntimeContext): ResolvedContext {
  const { spaces, files, store } = app;
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
    sessionKey: formatKey(key),
    sessionId,
    store: context.store ?? store,
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
    key.name === "global" ? "each sender has sessions of their own here" : "it stands for no session";
  throw new SkeinError("invalid_key", {
    key: text,
    problem,
    expected: "the key of a session, for example agent:main:main",
  });
}

/** A key of one agent in the name of another would be written into the wrong folder. */
function agentOf(agentId: string | null, key: ParsedKey | null, { agents }: ContextApp): string {
  const ofKey = key === null || key.form === "special" ? null : key.agentId;
  if (agentId !== null && ofKey !== null && agentId !== ofKey) {
    const problem = `The session key belongs to the agent "${ofKey}", not to "${agentId}"`;
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Leave the agent out, or name the key's own",
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

/** Where a message goes. */
export interface MessageTarget {
  readonly context: RuntimeContext & { readonly sessionKey: string };
  /** The session, if the reference had to be looked up. */
  readonly session: SessionRecord | null;
}

/**
 * Resolves the target of a message. A full key may name a session that does not exist yet, and is not looked up; any other
 * reference must exist. `null`: there is no such session.
 */
export async function resolveMessageTarget(
  store: Pick<Store, "sessions">,
  speaker: Speaker,
  reference: string,
): Promise<MessageTarget | null> {
  const { userId, asker, newId } = speaker;
  const key = keyMeant(reference, asker);
  const isFullKey = key !== null && key !== "global" && referenceLookups(reference, asker).length === 1;
  const session = isFullKey ? null : await sessionMeant(store, speaker, reference);
  if (session !== null)
    return { context: { userId, sessionKey: session.key, sessionId: session.sessionId }, session };
  if (key === null) return null;
  const named = nameNew(key, asker, { newId });
  return {
    context: { userId, sessionKey: named.key, ...present({ sessionId: named.sessionId }) },
    session: null,
  };
}

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
