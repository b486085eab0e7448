import { SkeinError } from "../core/errors.ts";
import type { ParsedKey } from "../core/keys.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { parseAgentId, parseSessionId } from "../core/names.ts";
import type { Store } from "../store/contract.ts";
import type { App } from "./app.ts";
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
  const cwd = chosenCwd(context.cwd ?? null, (wanted) =>
    files.resolveCwd({ userId, agentId }, wanted, "operator"),
  );
  const delivery = mapped(context.delivery, (each) => Object.freeze({ ...each }));
  return Object.freeze({
    userId,
    agentId,
    sessionKey: formatKey(key),
    sessionId,
    store: context.store ?? store,
    channel: context.channel ?? delivery?.channel ?? channelOf(key),
    delivery,
    cwd,
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
