import { present } from "../../../core/present.ts";
import { nameSession, patchedState } from "../../../sessions/change-session.ts";
import { parseModel } from "../../../transcript/parse-model.ts";
import type { FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { checkOwn } from "../shared/own-session.ts";
import { findSession, scopeOf } from "../shared/session-of.ts";
import { shownState } from "./shown-state.ts";

/** What is known of sessions. */
export function markingHandlers(
  deps: FolderDeps,
): HandlersOf<"sessions.rename" | "sessions.archive" | "sessions.patch"> {
  const { sessions } = deps.store;
  return {
    "sessions.rename": async (params, call) => {
      const scope = scopeOf(call);
      const found = await findSession(deps, call, params);
      const record =
        params.name === undefined
          ? await sessions.patch(scope, found.sessionId, { label: params.label ?? null })
          : await nameSession(sessions, scope, found, params.name);
      return shownState(deps, record, call);
    },

    "sessions.archive": async (params, call) => {
      const { sessionId } = await findSession(deps, call, params);
      const archived = params.archived === false ? null : true;
      return shownState(deps, await sessions.patch(scopeOf(call), sessionId, { archived }), call);
    },

    "sessions.patch": async (params, call) => {
      const { label, displayName, model, thinkingLevel, verboseLevel, sendPolicy, ifVersion } = params;
      if (typeof model === "string") parseModel(model);
      const found = await findSession(deps, call, params);
      if (typeof model === "string" || typeof thinkingLevel === "string") checkOwn(found, "settings");
      const { sessionId } = found;
      const given = { label, displayName, model, thinkingLevel, verboseLevel, sendPolicy };
      const changes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      const record = await sessions.patch(scopeOf(call), sessionId, changes, present({ ifVersion }));
      return patchedState(record, call);
    },
  };
}
