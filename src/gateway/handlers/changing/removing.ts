import { purgeSession, removeSession } from "../../../sessions/change-session.ts";
import type { FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { askerOf, findRemoved, findSession, scopeOf } from "../shared/session-of.ts";
import { shownState } from "./shown-state.ts";

/** What takes away, and what brings back. */
export function removingHandlers(
  deps: FolderDeps,
): HandlersOf<"sessions.reset" | "sessions.delete" | "sessions.restore" | "sessions.redact"> {
  const { sessions } = deps.store;
  return {
    "sessions.reset": async (params, call) => {
      const { sessionId } = await findSession(deps, call, params);
      const { old, fresh } = await sessions.reset(scopeOf(call), sessionId);
      return {
        key: fresh.key,
        sessionId: fresh.sessionId,
        previous: { key: old.key, sessionId: old.sessionId, uid: old.uid },
      };
    },

    "sessions.delete": async (params, call) => {
      const scope = scopeOf(call);
      if (params.purge === true) {
        const purged = await purgeSession(sessions, scope, await findRemoved(deps, call, params));
        return { ...purged, ...pendingErase(deps) };
      }
      const record = await findSession(deps, call, params);
      return removeSession(sessions, scope, record, askerOf(deps, params));
    },

    "sessions.restore": async (params, call) => {
      const { sessionId } = await findRemoved(deps, call, params);
      return shownState(deps, await sessions.restore(scopeOf(call), sessionId), call);
    },

    "sessions.redact": async (params, call) => {
      const { key, sessionId } = await findSession(deps, call, params);
      const redaction = await sessions.redact(scopeOf(call), sessionId, params.entryIds);
      return {
        key,
        sessionId,
        sessions: redaction.sessions.map((each) => ({
          sessionId: each.sessionId,
          entryIds: [...each.entryIds],
        })),
        mayRepeat: redaction.mayRepeat.map((each) => ({
          sessionId: each.sessionId,
          entryId: each.entryId,
        })),
        ...pendingErase(deps),
      };
    },
  };
}

/** What the answer to a removal says of bytes that another process keeps. */
export function pendingErase(deps: Pick<FolderDeps, "isErasePending">): { readonly erasePending?: true } {
  return deps.isErasePending() ? { erasePending: true } : {};
}
