import { SkeinError } from "../core/errors.ts";
import { parseAgentId } from "../core/names.ts";
import { userSegment } from "../core/path-segment.ts";
import type { Scope, Store } from "./contract.ts";

/** A store whose every method first checks the scope it is given: ids become folders, and an empty one is nobody's. */
export function scoped(store: Store): Store {
  return {
    sessions: checking(store.sessions),
    search: checking(store.search),
    state: checking(store.state),
    blobs: checking(store.blobs),
    watch: checking(store.watch),
    close: () => store.close(),
  };
}

function checkScope({ userId, agentId }: Scope): void {
  if (userId !== undefined) userSegment(userId);
  if (agentId !== undefined && parseAgentId(agentId) !== agentId) {
    const problem = `The scope's agent "${agentId}" is not in its own spelling`;
    throw new SkeinError("invalid_arguments", { problem, advice: `Write it as ${parseAgentId(agentId)}` });
  }
}

/** Every method of a port takes the scope first. Asynchronous ones refuse by rejecting. */
function checking<P extends object>(port: P): P {
  return new Proxy(port, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== "function") return method;
      return (scope: Scope, ...rest: unknown[]) => {
        try {
          checkScope(scope);
        } catch (error) {
          if (name === "subscribe") throw error;
          return Promise.reject(error);
        }
        return Reflect.apply(method, target, [scope, ...rest]);
      };
    },
  });
}
