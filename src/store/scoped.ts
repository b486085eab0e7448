import { SkeinError } from "../core/errors.ts";
import { parseAgentId } from "../core/names.ts";
import { userSegment } from "../core/path-segment.ts";
import { present } from "../core/present.ts";
import type { Scope, SessionRecord, Store } from "./contract.ts";

/** A store whose every method first checks the scope it is given: ids become folders, and an empty one is nobody's. */
export function scoped(store: Store): Store {
  return {
    sessions: checking(store.sessions),
    search: checking(store.search),
    state: checking(store.state),
    blobs: checking(store.blobs),
    watch: checking(store.watch, throwing),
    purgeUser: async (userId) => {
      checkScope({ userId });
      return store.purgeUser(userId);
    },
    close: () => store.close(),
  };
}

/** The scope that a session, or the session of a run, is read and written in. */
export function scopeOfSession({
  userId,
  agentId,
}: Pick<SessionRecord, "userId" | "agentId">): Scope & { readonly agentId: string } {
  return { agentId, ...present({ userId }) };
}

/** Names that were found right; checking them is most of the work of a quick call. */
const rightUsers = new Set<string>();
const rightAgents = new Set<string>();
const mostNames = 10_000;

/** Refuses a scope whose names are none. */
export function checkScope({ userId, agentId }: Scope): void {
  const isKnown =
    (userId === undefined || rightUsers.has(userId)) && (agentId === undefined || rightAgents.has(agentId));
  if (isKnown) return;
  if (userId !== undefined) userSegment(userId);
  if (agentId !== undefined && parseAgentId(agentId) !== agentId) {
    const problem = `The scope's agent "${agentId}" is not in its own spelling`;
    throw new SkeinError("invalid_arguments", { problem, advice: `Write it as ${parseAgentId(agentId)}` });
  }
  if (rightUsers.size + rightAgents.size > mostNames) {
    rightUsers.clear();
    rightAgents.clear();
  }
  if (userId !== undefined) rightUsers.add(userId);
  if (agentId !== undefined) rightAgents.add(agentId);
}

/** A method that answers later refuses later too. */
const rejecting = (error: unknown): unknown => Promise.reject(error);
const throwing = (error: unknown): never => {
  throw error;
};

/** Every method of a port takes the scope first. */
function checking<P extends object>(port: P, refuse: (error: unknown) => unknown = rejecting): P {
  const made = new Map<string | symbol, unknown>();
  return new Proxy(port, {
    get(target, name) {
      const known = made.get(name);
      if (known !== undefined) return known;
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== "function") return method;
      const checked = (scope: Scope, ...rest: unknown[]) => {
        try {
          checkScope(scope);
        } catch (error) {
          return refuse(error);
        }
        return Reflect.apply(method, target, [scope, ...rest]);
      };
      made.set(name, checked);
      return checked;
    },
  });
}
