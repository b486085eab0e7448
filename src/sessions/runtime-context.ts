import { isAbsolute } from "node:path";
import { SkeinError } from "../core/errors.ts";
import type { ParsedKey } from "../core/keys.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { parseAgentId, parseSessionId } from "../core/names.ts";
import type { CwdChoice } from "../file-access/file-boundary.ts";
import type { SessionMeta, Store } from "../store/contract.ts";

/**
 * For whom, where and how a call is made. It goes along with every call; there is no "current user" anywhere. `null` is
 * left open, so that a resolved context can be handed on.
 */
export interface RuntimeContext {
  /** No user id is the unnamed user. */
  readonly userId?: string | null;
  readonly agentId?: string | null;
  readonly sessionKey?: string | null;
  readonly sessionId?: string | null;
  /**
   * Another store than the Skein's own, or the name of one in `createSkein({ stores })`. Its sessions are a space of their
   * own: nothing leads from one store to another.
   */
  readonly store?: Store | string | null;
  /**
   * The folders of the user's sessions, from the root down; by default `users` and the user id. The sessions of two
   * namespaces never meet, whatever their keys. A folder has one user.
   */
  readonly namespace?: readonly string[] | null;
  readonly channel?: string | null;
  readonly delivery?: Delivery | null;
  /** Absolute. */
  readonly cwd?: string | null;
}

export type Delivery = NonNullable<SessionMeta["delivery"]>;

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

export interface ContextDefaults {
  /** The user id of a call as stores and runs know it. */
  enter(call: Pick<RuntimeContext, "userId" | "store" | "namespace">): string | null;
  /** The store of a user's sessions, if this process does not have it. */
  missingStore(userId: string | null): string | null;
  readonly agentId: string;
  readonly store: Store;
  /** With `global`, main is the one session that all senders share. */
  readonly scope: "per-sender" | "global";
  /** The working directory of a session that is to be created; `wanted: null` stands for the agent's default. */
  resolveCwd(
    owner: { readonly userId: string | null; readonly agentId: string },
    wanted: string | null,
  ): CwdChoice;
}

/**
 * Fills in what a context leaves open. The agent: the given one, else the key's, else the default. The key: the given
 * one, else that of the session id (a session that exists under another key is looked up before), else the agent's
 * main. The folder: the given one if the agent may work there, else the agent's default.
 */
export function resolveRuntimeContext(context: RuntimeContext, defaults: ContextDefaults): ResolvedContext {
  const userId = defaults.enter(context);
  const sessionId = mapped(context.sessionId, parseSessionId);
  const given = mapped(context.sessionKey, (text) => givenKey(text, defaults));
  const agentId = agentOf(mapped(context.agentId, parseAgentId), given, defaults);
  const key = given ?? impliedKey(agentId, sessionId, defaults);
  const cwd = chosenCwd(context.cwd ?? null, (wanted) => defaults.resolveCwd({ userId, agentId }, wanted));
  const delivery = mapped(context.delivery, (each) => Object.freeze({ ...each }));
  return Object.freeze({
    userId,
    agentId,
    sessionKey: formatKey(key),
    sessionId,
    store: context.store ?? defaults.store,
    channel: context.channel ?? delivery?.channel ?? channelOf(key),
    delivery,
    cwd,
  });
}

/** The working directory of a new session; throws `invalid_arguments` where the wanted one is not allowed. */
export function chosenCwd(wanted: string | null, resolveCwd: (wanted: string | null) => CwdChoice): string {
  if (wanted !== null && !isAbsolute(wanted)) {
    const problem = `The working directory "${wanted}" is not absolute`;
    throw new SkeinError("invalid_arguments", { problem, advice: "Resolve it before you pass it" });
  }
  const choice = resolveCwd(wanted);
  if ("cwd" in choice) return choice.cwd;
  const refused = refusedCwd[choice.refusal === "in_root_folder" ? "inRoot" : "outside"];
  throw new SkeinError("invalid_arguments", {
    problem: `The working directory "${wanted}" ${refused.problem}`,
    advice: refused.advice,
  });
}

const refusedCwd = {
  inRoot: {
    problem: "is inside Skein's root folder",
    advice: "Choose a folder outside of it, or leave it out for the agent's default",
  },
  outside: {
    problem: "is not a folder that this agent may work in",
    advice: "Choose a folder inside agents.<id>.roots or agents.<id>.cwd, or leave it out",
  },
} as const;

function givenKey(text: string, { scope }: ContextDefaults): ParsedKey {
  const key = parseKey(text);
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
function agentOf(agentId: string | null, key: ParsedKey | null, defaults: ContextDefaults): string {
  const ofKey = key === null || key.form === "special" ? null : key.agentId;
  if (agentId !== null && ofKey !== null && agentId !== ofKey) {
    const problem = `The session key belongs to the agent "${ofKey}", not to "${agentId}"`;
    throw new SkeinError("invalid_arguments", {
      problem,
      advice: "Leave the agent out, or name the key's own",
    });
  }
  return agentId ?? ofKey ?? parseAgentId(defaults.agentId);
}

function impliedKey(agentId: string, sessionId: string | null, { scope }: ContextDefaults): ParsedKey {
  if (sessionId !== null) return { form: "named", agentId, sessionId };
  return scope === "global" ? { form: "special", name: "global" } : { form: "main", agentId };
}

function channelOf(key: ParsedKey): string | null {
  return key.form === "direct" || key.form === "group" ? (key.channel ?? null) : null;
}

function mapped<T, U>(value: T | null | undefined, map: (value: T) => U): U | null {
  return value === null || value === undefined ? null : map(value);
}
