import type { Calls } from "../../protocol/methods/calls.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser, localTokenId, tokenScopes } from "../auth/principal.ts";
import type { HandledMethod, Handlers, HandlersOf } from "./contract.ts";
import { Dispatch } from "./dispatch.ts";

/** Who has the folder itself. */
export const localPrincipal: Principal = {
  tokenId: localTokenId,
  name: "this machine",
  scopes: tokenScopes,
  user: everyUser,
  expiresAt: null,
};

/** Methods in this process: the same checks and handlers as over a socket, without one. */
export function localCalls<M extends HandledMethod>(
  handlers: HandlersOf<M>,
  principal: Principal = localPrincipal,
): Calls<M> {
  const dispatch = new Dispatch({
    handlers: () => handlers as unknown as Handlers,
    newErrorId: () => "",
    report: () => undefined,
  });
  const never = new AbortController().signal;
  return {
    call: (method: MethodName, params, { signal = never } = {}) =>
      dispatch.invoke(principal, method, params, signal) as Promise<never>,
  };
}
