import { SkeinError } from "../../core/errors.ts";
import type { Calls } from "../../protocol/methods/calls.ts";
import type { MethodName } from "../../protocol/methods/method-table.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser, localTokenId, tokenScopes } from "../auth/principal.ts";
import type { HandledMethod, Handlers, HandlersOf } from "./contract.ts";
import { Dispatch, Refused } from "./dispatch.ts";

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

/** For callers of the library: a refused request is a `SkeinError`, not an error of the wire protocol. */
export function throwingSkeinErrors<M extends HandledMethod>({ call }: Calls<M>): Calls<M> {
  const checked: typeof call = (...args) =>
    call(...args).catch((error: unknown) => {
      if (!(error instanceof Refused)) throw error;
      const problems = error.wire.details?.problems ?? [];
      const texts = problems.map(({ path, problem }) => `${path} ${problem}`.trim());
      throw new SkeinError("invalid_arguments", {
        problem: `${args[0]}: ${texts.length === 0 ? error.message.replace(/\.$/, "") : texts.join("; ")}`,
        advice: "The type of its parameter lists the fields",
      });
    });
  return { call: checked };
}
