import { readKey } from "../../core/keys.ts";
import { parseAgentId } from "../../core/names.ts";
import { present } from "../../core/present.ts";
import type { SessionStatePayload } from "../../protocol/session-changes.ts";
import {
  nameSession,
  patchedState,
  purgeSession,
  removeSession,
  sessionState,
} from "../../sessions/change-session.ts";
import { SessionImporter } from "../../sessions/import.ts";
import { nameNewSession } from "../../sessions/resolve-context.ts";
import { withWorkingDirectory } from "../../sessions/run-session.ts";
import { chosenCwd } from "../../sessions/runtime-context.ts";
import type { MetaPatch, SessionRecord } from "../../store/contract.ts";
import { applyPatch } from "../../store/session-meta.ts";
import { parseModel } from "../../transcript/model-table.ts";
import { maskFor } from "../auth/mask.ts";
import type { Call, FolderApp, HandlersOf } from "./dispatch.ts";
import { askerOf, findSession, findTrashedSession, refuseAcpSession, scopeOf } from "./session-lookup.ts";

/** Methods that create sessions or move their leaf. */
export function makingHandlers(
  app: FolderApp,
): HandlersOf<"sessions.create" | "sessions.fork" | "sessions.branch"> {
  const { sessions } = app.store;
  return {
    "sessions.create": async (params, call) => {
      const { key, sessionId, label, displayName, model, thinkingLevel, agentId } = params;
      if (model !== undefined) parseModel(model);
      const names = nameNewSession(key, askerOf(app, params), { sessionId, newId: app.newId });
      refuseAcpSession(names, "create");
      // The store rejects a key that belongs to an agent other than the named one.
      const scope = agentId === undefined ? {} : { agentId: parseAgentId(agentId) };
      const record = await sessions.create(
        { ...scopeOf(call), ...scope },
        {
          ...names,
          cwd: cwdFor(app, call, names.key, params.cwd),
          meta: present({ label, displayName, model, thinkingLevel }),
        },
      );
      return statePayload(app, record, call);
    },

    "sessions.fork": async (params, call) => {
      const from = await findSession(app, call, params);
      refuseAcpSession(from, "fork");
      const { entryId = from.leafId, sessionId, label } = params;
      const names = nameNewSession(undefined, { agentId: from.agentId }, { sessionId, newId: app.newId });
      const record = await sessions.fork(scopeOf(call), from.sessionId, entryId, {
        ...names,
        cwd: (await withWorkingDirectory(app, from)).cwd,
        meta: { ...present({ label }), forkedFrom: { sessionId: from.sessionId, entryId } },
      });
      return {
        ...statePayload(app, record, call),
        forkedFrom: { key: from.key, sessionId: from.sessionId, entryId },
      };
    },

    "sessions.branch": async (params, call) => {
      const found = await findSession(app, call, params);
      refuseAcpSession(found, "branch");
      const { sessionId } = found;
      const { key, leafId } = await sessions.branch(scopeOf(call), sessionId, params.entryId);
      return { key, sessionId, leafId };
    },
  };
}

/** Only an admin can name a folder, and an admin has an operator's access to folders. */
function cwdFor({ files, agents }: FolderApp, call: Call, key: string, wanted: string | undefined): string {
  const parsed = readKey(key);
  const agentId = "problem" in parsed || parsed.form === "special" ? agents.first : parsed.agentId;
  const owner = { userId: call.userId, agentId };
  return chosenCwd(wanted ?? null, (path) =>
    files.resolveCwd(owner, path, call.isAdmin ? "operator" : "session"),
  );
}

/** Methods that change a session's metadata. */
export function markingHandlers(
  app: FolderApp,
): HandlersOf<"sessions.label" | "sessions.rename" | "sessions.archive" | "sessions.patch"> {
  const { sessions } = app.store;
  return {
    "sessions.label": async (params, call) => {
      const { key, sessionId } = await findSession(app, call, params);
      const { entryId } = params;
      const label = params.label?.trim() ?? "";
      await sessions.append(scopeOf(call), sessionId, [
        { draft: { type: "label", targetId: entryId, label } },
      ]);
      return { key, sessionId, entryId, ...(label === "" ? {} : { label }) };
    },

    "sessions.rename": async (params, call) => {
      const scope = scopeOf(call);
      const found = await findSession(app, call, params);
      const record =
        params.name === undefined
          ? await sessions.patch(scope, found.sessionId, { label: params.label ?? null })
          : await nameSession(sessions, scope, found, params.name);
      return statePayload(app, record, call);
    },

    "sessions.archive": async (params, call) => {
      const { sessionId } = await findSession(app, call, params);
      const archived = params.archived === false ? null : true;
      return statePayload(app, await sessions.patch(scopeOf(call), sessionId, { archived }), call);
    },

    "sessions.patch": async (params, call) => {
      const { label, displayName, model, thinkingLevel, verboseLevel, sendPolicy, ifVersion } = params;
      if (typeof model === "string") parseModel(model);
      const found = await findSession(app, call, params);
      if (typeof model === "string" || typeof thinkingLevel === "string") refuseAcpSession(found, "settings");
      const { sessionId } = found;
      const given = { label, displayName, model, thinkingLevel, verboseLevel, sendPolicy };
      const changes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
      const record = isApplied(found, changes, ifVersion)
        ? found
        : await sessions.patch(scopeOf(call), sessionId, changes, present({ ifVersion }));
      return patchedState(record, call);
    },
  };
}

/** Whether a later version already has these values, as it does when a client sends a patch again. */
function isApplied({ meta, version }: SessionRecord, changes: MetaPatch, ifVersion: number | undefined) {
  if (ifVersion === undefined || version <= ifVersion || Object.keys(changes).length === 0) return false;
  return applyPatch(meta, changes) === meta;
}

/** Returns a session's state as the caller is allowed to see it. Display names are masked, as in lists. */
export function statePayload(app: FolderApp, record: SessionRecord, call: Call): SessionStatePayload {
  const state = sessionState(record, call);
  const { displayName } = state;
  return displayName === undefined ? state : { ...state, displayName: maskFor(app, call).text(displayName) };
}

/** Methods that remove sessions and content, and restore sessions. */
export function removingHandlers(
  app: FolderApp,
): HandlersOf<"sessions.reset" | "sessions.delete" | "sessions.restore" | "sessions.redact"> {
  const { sessions } = app.store;
  return {
    "sessions.reset": async (params, call) => {
      const { sessionId } = await findSession(app, call, params);
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
        const purged = await purgeSession(sessions, scope, await findTrashedSession(app, call, params));
        return { ...purged, ...pendingErase(app) };
      }
      const record = await findSession(app, call, params);
      return removeSession(sessions, scope, record, askerOf(app, params));
    },

    "sessions.restore": async (params, call) => {
      const { sessionId } = await findTrashedSession(app, call, params);
      return statePayload(app, await sessions.restore(scopeOf(call), sessionId), call);
    },

    "sessions.redact": async (params, call) => {
      const { key, sessionId } = await findSession(app, call, params);
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
        ...pendingErase(app),
      };
    },
  };
}

/** Returns the `erasePending` field, which is present while another process still holds erased bytes. */
export function pendingErase({ store }: Pick<FolderApp, "store">): { readonly erasePending?: true } {
  return store.upkeep?.isErasePending() === true ? { erasePending: true } : {};
}

/** Imports sessions from other programs, given the contents of their files. */
export function importingHandlers(app: FolderApp): HandlersOf<"sessions.import"> {
  return {
    "sessions.import": async (params, call) => {
      const { files, from = null, dryRun = false } = params;
      const { key, label, cwd, model, sendPolicy, delivery, keepMetadata } = params;
      const settings = { key, label, cwd, model, sendPolicy, delivery, keepMetadata };
      if (model !== undefined) parseModel(model);
      const { agentId } = askerOf(app, params);
      // The importers are loaded on first use.
      const [{ sourcesAmong }, { checkNamesOne, importAll }] = await Promise.all([
        import("../../sessions/import-sources.ts"),
        import("../../sessions/import-sources.ts"),
      ]);
      const sources = sourcesAmong(files, agentId);
      checkNamesOne(settings, sources);
      const importer = new SessionImporter(app.store.sessions, scopeOf(call), {
        ...{ agentId, dryRun, settings, clock: app.clock },
        cwdFor: (agent, wanted) =>
          chosenCwd(wanted, (path) =>
            app.files.resolveCwd({ userId: call.userId, agentId: agent }, path, "operator"),
          ),
      });
      return importAll(importer, sources, from);
    },
  };
}
