import { readKey } from "../../../core/keys.ts";
import { parseAgentId } from "../../../core/names.ts";
import { present } from "../../../core/present.ts";
import { nameNew } from "../../../sessions/find-session.ts";
import { chosenCwd } from "../../../sessions/runtime-context.ts";
import { withWorkingDirectory } from "../../../sessions/working-directory.ts";
import { parseModel } from "../../../transcript/parse-model.ts";
import type { Call, FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { checkOwn } from "../shared/own-session.ts";
import { askerOf, findSession, scopeOf } from "../shared/session-of.ts";
import { shownState } from "./shown-state.ts";

/** Sessions that come to be, and where they stand. */
export function makingHandlers(
  deps: FolderDeps,
): HandlersOf<"sessions.create" | "sessions.fork" | "sessions.branch"> {
  const { sessions } = deps.store;
  return {
    "sessions.create": async (params, call) => {
      const { key, sessionId, label, displayName, model, thinkingLevel, agentId } = params;
      if (model !== undefined) parseModel(model);
      const names = nameNew(key, askerOf(deps, params), { sessionId, newId: deps.newId });
      checkOwn(names, "create");
      // A key of another agent than the one that was named is a slip, which the store refuses.
      const scope = agentId === undefined ? {} : { agentId: parseAgentId(agentId) };
      const record = await sessions.create(
        { ...scopeOf(call), ...scope },
        {
          ...names,
          cwd: cwdFor(deps, call, names.key, params.cwd),
          meta: present({ label, displayName, model, thinkingLevel }),
        },
      );
      return shownState(deps, record, call);
    },

    "sessions.fork": async (params, call) => {
      const from = await findSession(deps, call, params);
      checkOwn(from, "fork");
      const { entryId = from.leafId, sessionId, label } = params;
      const names = nameNew(undefined, { agentId: from.agentId }, { sessionId, newId: deps.newId });
      const record = await sessions.fork(scopeOf(call), from.sessionId, entryId, {
        ...names,
        cwd: (await withWorkingDirectory(deps, from)).cwd,
        meta: present({ label }),
      });
      return {
        ...shownState(deps, record, call),
        forkedFrom: { key: from.key, sessionId: from.sessionId, entryId },
      };
    },

    "sessions.branch": async (params, call) => {
      const found = await findSession(deps, call, params);
      checkOwn(found, "branch");
      const { sessionId } = found;
      const { key, leafId } = await sessions.branch(scopeOf(call), sessionId, params.entryId);
      return { key, sessionId, leafId };
    },
  };
}

/** Only an admin may name a folder, so that caller acts as an operator. */
function cwdFor(
  { files, defaultAgentId }: FolderDeps,
  call: Call,
  key: string,
  wanted: string | undefined,
): string {
  const parsed = readKey(key);
  const agentId = "problem" in parsed || parsed.form === "special" ? defaultAgentId : parsed.agentId;
  const owner = { userId: call.userId, agentId };
  return chosenCwd(wanted ?? null, (path) =>
    files.resolveCwd(owner, path, call.isAdmin ? "operator" : "session"),
  );
}
