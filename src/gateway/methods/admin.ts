import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { TokenRow } from "../../protocol/tokens.ts";
import { listUsers } from "../../sessions/list-users.ts";
import { decisionPayload, explainedPayload, failedPayload, runMaintenance } from "../../sessions/maintain.ts";
import { createLinkCode } from "../auth/link-codes.ts";
import type { TokenUser } from "../auth/principal.ts";
import { everyUser, isForAll, isLocal } from "../auth/principal.ts";
import type { TokenRecord } from "../auth/token-table.ts";
import type { Tokens } from "../auth/tokens.ts";
import type { FolderApp, HandlersOf, MethodApp } from "./dispatch.ts";
import { findTrashedSession, lookUpSession, requireEveryUser } from "./session-lookup.ts";
import { pendingErase } from "./sessions-change.ts";

/** Methods that administer the folder as a whole. */
export function upkeepHandlers(
  app: FolderApp & Pick<MethodApp, "tokens">,
): HandlersOf<"maintenance.run" | "config.get" | "config.reload" | "users.list" | "users.remove"> {
  return {
    "maintenance.run": async ({ dryRun = false, explain, agentId }, call) => {
      const { store, config, clock, runs } = app;
      const rules = config.session.maintenance;
      const users = await store.work.users();
      const work = { store, users, rules, now: clock.now(), runs, signal: call.signal };
      const named = explain === undefined ? null : { key: explain, agentId };
      const session =
        named === null
          ? null
          : ((await lookUpSession(app, call, named)) ?? (await findTrashedSession(app, call, named)));
      const report = await runMaintenance(work, { dryRun, ...present({ explainUid: session?.uid }) });
      return {
        mode: report.mode,
        decisions: report.decisions.map(decisionPayload),
        done: report.done.map(decisionPayload),
        ...failedPayload(report.failed),
        ...explainedPayload(session, report.explained),
      };
    },

    "config.get": async () => {
      const { effectiveConfigText } = await import("../../config/effective.ts");
      // A configuration with errors is never loaded, so there are no problems to report.
      return {
        ...present({ file: app.loaded.file }),
        problems: [],
        effective: effectiveConfigText(app.loaded),
        ...(app.loaded.waiting === undefined ? {} : { waiting: [...app.loaded.waiting] }),
      };
    },

    "config.reload": async () => {
      if (app.reload !== undefined) return app.reload();
      throw new SkeinError("unavailable", {
        problem: "No gateway is running for this folder",
        advice: "Start one with `skein start`, which reads the whole configuration",
      });
    },

    "users.list": async (page) =>
      listUsers({ ...requireEveryUser(app), runs: app.runs, tokens: app.tokens }, page),

    "users.remove": async ({ userId }) => {
      // Tokens are removed first so that no session can be created during the removal.
      const tokens = await app.tokens.removeUser(userId);
      const { sessions } = await app.store.purgeUser(userId);
      const found = sessions + tokens.length > 0 ? {} : ({ found: false } as const);
      return { userId, sessions, ...found, ...pendingErase(app) };
    },
  };
}

/** The label for tokens created without one. */
const plainLabel = "token";

/** Methods that manage tokens. `app` is not copied, because its tokens are opened on first use. */
export function tokenHandlers(
  app: Pick<MethodApp, "tokens">,
): HandlersOf<"tokens.create" | "tokens.list" | "tokens.revoke" | "tokens.revokeOwn" | "links.create"> {
  const revoke = async (tokenId: string): Promise<TokenRow> => {
    await app.tokens.revoke(tokenId);
    const token = await app.tokens.get(tokenId);
    if (token !== null) return { ...rowOf(token), ...unsavedOf(tokenId) };
    const advice = "It has since been removed, which also revoked it";
    throw new SkeinError("not_found", { what: "Token", name: tokenId, advice });
  };
  const unsavedOf = (tokenId: string) => (app.tokens.isUnsaved(tokenId) ? { isUnsaved: true as const } : {});
  return {
    "tokens.create": async (params, { principal }) => {
      const { label: name = plainLabel, scopes, expiresAt } = params;
      const request = { name, scopes, user: userOf(params), ...present({ expiresAt }) };
      const maker = isLocal(principal) ? null : principal;
      const { secret, token } = await app.tokens.create(request, maker);
      return { ...rowOf(token), token: secret };
    },

    "tokens.list": async () => {
      const tokens = (await app.tokens.list())
        .toReversed()
        .map((token) => ({ ...rowOf(token), ...unsavedOf(token.tokenId) }));
      return { count: tokens.length, tokens };
    },

    "tokens.revoke": async ({ tokenId }) => revoke(tokenId),

    "tokens.revokeOwn": async ({ tokenId }, { principal }) => {
      const own = principal.tokenId;
      if (tokenId !== undefined && !(await isCreatedBy(app.tokens, tokenId, own))) {
        const advice = "A token can revoke only itself and the tokens it has created";
        throw new SkeinError("not_found", { what: "Token", name: tokenId, advice });
      }
      return revoke(tokenId ?? own);
    },

    "links.create": async (_, { principal }) => {
      if (isLocal(principal)) {
        const advice = "Start one with `skein start`, which prints a link";
        throw new SkeinError("unavailable", { problem: "No gateway is running for this folder", advice });
      }
      const { code, expiresAt } = await createLinkCode(app.tokens, principal);
      return { url: `./#code=${code}`, expiresAt };
    },
  };
}

/** Whether a token is `own`, or was created by it, directly or through other tokens. */
async function isCreatedBy(tokens: Tokens, tokenId: string, own: string): Promise<boolean> {
  let next: string | null = tokenId;
  while (next !== null && next !== own) next = (await tokens.get(next))?.parent ?? null;
  return next === own;
}

/** A user whose ID equals the wildcard for every user must not get a token for every user. */
function userOf(params: { readonly userId?: string; readonly allUsers?: boolean }): TokenUser {
  const { userId = null, allUsers = false } = params;
  if (allUsers && userId === null) return everyUser;
  if (!allUsers && userId !== everyUser) return userId;
  const problem = allUsers
    ? "A token is for either one user or all users"
    : `The user "${everyUser}" cannot have its own token`;
  const advice = allUsers
    ? "Set userId or allUsers, but not both"
    : "Create a token for all users. Calls with that token can set userId to this user";
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
