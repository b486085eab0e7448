import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { TokenRow } from "../../protocol/tokens.ts";
import type { TokenUser } from "../auth/principal.ts";
import { everyUser, isForAll, isLocal } from "../auth/principal.ts";
import type { TokenRecord } from "../auth/token-rows.ts";
import type { HandlersOf, TokenDeps } from "../calls/contract.ts";
import type { TokenMethod } from "./families.ts";

/** What a token is called that nobody gave a label. */
const plainLabel = "token";

/** Methods about who may come in. `deps` is not copied: its tokens may be opened when they are wanted. */
export function tokenHandlers(deps: TokenDeps): HandlersOf<TokenMethod> {
  const unsavedOf = (tokenId: string) => (deps.tokens.isUnsaved(tokenId) ? { isUnsaved: true as const } : {});
  return {
    "tokens.create": async (params, { principal }) => {
      const { label: name = plainLabel, scopes, expiresAt } = params;
      const request = { name, scopes, user: userOf(params), ...present({ expiresAt }) };
      const maker = isLocal(principal) ? null : principal;
      const { secret, token } = deps.tokens.create(request, maker);
      return { ...rowOf(token), token: secret };
    },

    "tokens.list": async () => {
      const tokens = deps.tokens
        .list()
        .toReversed()
        .map((token) => ({ ...rowOf(token), ...unsavedOf(token.tokenId) }));
      return { count: tokens.length, tokens };
    },

    "tokens.revoke": async ({ tokenId }) => {
      deps.tokens.revoke(tokenId);
      const token = deps.tokens.get(tokenId);
      if (token !== null) return { ...rowOf(token), ...unsavedOf(tokenId) };
      const advice = "It was removed meanwhile, which ended it too";
      throw new SkeinError("not_found", { what: "Token", name: tokenId, advice });
    },
  };
}

/** A user may be called as everybody is written, and is not to get everybody's token. */
function userOf(params: { readonly userId?: string; readonly allUsers?: boolean }): TokenUser {
  const { userId = null, allUsers = false } = params;
  if (allUsers && userId === null) return everyUser;
  if (!allUsers && userId !== everyUser) return userId;
  const problem = allUsers
    ? "A token is for one user or for all of them"
    : `The user "${everyUser}" can have no token of its own`;
  const advice = allUsers
    ? "Give userId or allUsers, and not both"
    : "Make one for all users; with it a call can name that user";
  throw new SkeinError("invalid_arguments", { problem, advice });
}

function rowOf(token: TokenRecord): TokenRow {
  const { tokenId, name, scopes, user, createdAt, parent, expiresAt, lastUsedAt, revokedAt } = token;
  const allUsers = isForAll(token);
  return {
    tokenId,
    label: name,
    scopes: [...scopes],
    allUsers,
    createdAt,
    ...present({ userId: allUsers ? null : user, createdBy: parent, expiresAt, lastUsedAt, revokedAt }),
  };
}
