import { createHash } from "node:crypto";
import { retryAdvice, SkeinError } from "../core/errors.ts";
import { formatKey, parseKey } from "../core/keys.ts";
import { parseAgentId, sessionIdProblem } from "../core/names.ts";
import { userSegment } from "../core/path-segment.ts";
import { present } from "../core/present.ts";
import type { Scope, SessionRecord, Store } from "./contract.ts";

/** Checks the scope of every call before it reaches the store, because IDs become folder names. */
export function withScopeChecks(store: Store): Store {
  return {
    sessions: wrapPort(store.sessions, rejectInvalidScope),
    search: wrapPort(store.search, rejectInvalidScope),
    state: wrapPort(store.state, rejectInvalidScope),
    blobs: wrapPort(store.blobs, rejectInvalidScope),
    watch: wrapPort(store.watch, (invoke, scope, rest) => {
      checkScope(scope);
      return invoke(scope, ...rest);
    }),
    purgeUser: async (userId) => {
      checkScope({ userId });
      return store.purgeUser(userId);
    },
    close: () => store.close(),
  };
}

export function scopeOfSession({
  userId,
  agentId,
}: Pick<SessionRecord, "userId" | "agentId">): Scope & { readonly agentId: string } {
  return { agentId, ...present({ userId }) };
}

/** Names that have passed the check. They are cached because the check is the slowest part of a cheap call. */
const validUsers = new Set<string>();
const validAgents = new Set<string>();
const mostNames = 10_000;

/** Throws if a name in the scope is invalid. */
export function checkScope({ userId, agentId }: Scope): void {
  const isKnown =
    (userId === undefined || validUsers.has(userId)) && (agentId === undefined || validAgents.has(agentId));
  if (isKnown) return;
  if (userId !== undefined) userSegment(userId);
  if (agentId !== undefined && parseAgentId(agentId) !== agentId) {
    const problem = `The scope's agent "${agentId}" is not in canonical form`;
    throw new SkeinError("invalid_arguments", { problem, advice: `Write it as ${parseAgentId(agentId)}` });
  }
  if (validUsers.size + validAgents.size > mostNames) {
    validUsers.clear();
    validAgents.clear();
  }
  if (userId !== undefined) validUsers.add(userId);
  if (agentId !== undefined) validAgents.add(agentId);
}

/** Handles a call to a port's method. `invoke` calls the original method. */
type PortCall = (
  invoke: (scope: Scope, ...rest: unknown[]) => unknown,
  scope: Scope,
  rest: readonly unknown[],
  name: string,
) => unknown;

/** Makes asynchronous methods reject instead of throwing. */
const rejectInvalidScope: PortCall = (invoke, scope, rest) => {
  try {
    checkScope(scope);
  } catch (error) {
    return Promise.reject(error);
  }
  return invoke(scope, ...rest);
};

/** Wraps a port so that its calls go through `call`. The scope is the first argument of every method. */
export function wrapPort<P extends object>(port: P, call: PortCall): P {
  const wrappers = new Map<string | symbol, unknown>();
  return new Proxy(port, {
    get(target, name) {
      const known = wrappers.get(name);
      if (known !== undefined) return known;
      const method = () => Reflect.get(target, name, target) as (...args: unknown[]) => unknown;
      if (typeof method() !== "function") return method();
      const invoke = (...args: unknown[]) => Reflect.apply(method(), target, args);
      const wrapper = (scope: Scope, ...rest: unknown[]) => call(invoke, scope, rest, String(name));
      wrappers.set(name, wrapper);
      return wrapper;
    },
  });
}

export function inScope(scope: Scope, session: Pick<SessionRecord, "userId" | "agentId">): boolean {
  const sameUser = (scope.userId ?? null) === session.userId;
  return sameUser && (scope.agentId === undefined || scope.agentId === session.agentId);
}

export function noSuchSession(sessionId: string): never {
  const advice = "Check the ID, or create the session first. Use `sessions.list` to find existing sessions";
  throw new SkeinError("not_found", { what: "Session", name: sessionId, advice });
}

/** Throws `conflict` because another of the user's sessions has a value that must be unique. */
export function throwTaken(
  what: "session key" | "session ID" | "label" | "uid",
  name: string,
  cause?: unknown,
): never {
  throw new SkeinError(
    "conflict",
    {
      problem: `The ${what} "${name}" is already taken`,
      advice: "Choose a different one, or use the session that has it",
    },
    { cause },
  );
}

/** Rejects a change that is based on an outdated `updatedAt`. */
export function checkUpdatedAt({ sessionId, updatedAt }: SessionRecord, expected: number | undefined): void {
  if (expected === undefined || expected === updatedAt) return;
  throw new SkeinError("conflict", {
    problem: `Session ${sessionId} has since been used`,
    advice: retryAdvice,
  });
}

export function checkRemovedAt(removedAt: number, expected: number | undefined): void {
  if (expected === undefined || expected === removedAt) return;
  throw new SkeinError("conflict", {
    problem: "The session has since been restored",
    advice: retryAdvice,
  });
}

/** Rejects a change that is based on an outdated version. */
export function checkVersion(actual: number, expected: number | undefined): void {
  if (expected === undefined || expected === actual) return;
  throw new SkeinError("conflict", {
    problem: `The session has version ${actual}, not ${expected}`,
    advice: retryAdvice,
  });
}

/** Returns the canonical key and its agent. Rejects a key whose agent is outside the scope. */
export function keyInScope(scope: Scope, text: string): { key: string; agentId: string } {
  const parsed = parseKey(text);
  const agentId = parsed.form === "special" ? (scope.agentId ?? "main") : parsed.agentId;
  if (scope.agentId !== undefined && scope.agentId !== agentId) {
    const problem = `it belongs to agent ${agentId}, which is outside the scope`;
    throw new SkeinError("invalid_key", {
      key: text,
      problem,
      expected: `a key that belongs to agent ${scope.agentId}`,
    });
  }
  return { key: formatKey(parsed), agentId };
}

export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Rejects a scope without an agent, because a blob belongs to an agent. */
export function agentOfBlob({ agentId }: Scope): string {
  if (agentId !== undefined) return agentId;
  throw new SkeinError("invalid_arguments", {
    problem: "Blobs belong to an agent",
    advice: "Name an agent in the scope",
  });
}

/** Applies the rules for session IDs because state keys are file names. */
export function checkStateKey(key: string): void {
  const problem = sessionIdProblem(key);
  if (problem === null) return;
  throw new SkeinError("invalid_arguments", {
    problem: `The state key "${key}" is not valid: ${problem}`,
    advice: "Use letters, digits, dots, underscores and hyphens",
  });
}

/** Serializes a value. Rejects values that cannot be represented in JSON. */
export function stateText(key: string, value: unknown): string {
  let problem = "it is not valid JSON";
  try {
    const text = JSON.stringify(value, (_, each: unknown) => {
      if (typeof each !== "number" || Number.isFinite(each)) return each;
      throw new TypeError(`${each} is not JSON`);
    });
    if (text !== undefined) return text;
  } catch (error) {
    problem = String((error as Error).message).split("\n")[0] ?? problem;
  }
  throw new SkeinError("invalid_arguments", {
    problem: `State "${key}" cannot store this value: ${problem}`,
    advice: "Set a JSON value, or delete the state",
  });
}

/** Returns the next version. Throws `conflict` if `ifVersion` is outdated. `null` means that no value exists. */
export function nextVersion(
  key: string,
  actual: number | null,
  { ifVersion }: { readonly ifVersion?: number | null },
): number {
  if (ifVersion === undefined || ifVersion === actual) return (actual ?? 0) + 1;
  const say = (version: number | null) => (version === null ? "absent" : `version ${version}`);
  throw new SkeinError("conflict", {
    problem: `State "${key}" is ${say(actual)}, not ${say(ifVersion)}`,
    advice: retryAdvice,
  });
}
