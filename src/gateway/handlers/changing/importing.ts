import { SessionImporter } from "../../../sessions/import.ts";
import { chosenCwd } from "../../../sessions/runtime-context.ts";
import { parseModel } from "../../../transcript/parse-model.ts";
import type { FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { askerOf, scopeOf } from "../shared/session-of.ts";

/** Sessions of other programs, by the contents of their files. */
export function importingHandlers(deps: FolderDeps): HandlersOf<"sessions.import"> {
  return {
    "sessions.import": async (params, call) => {
      const { files, from = null, dryRun = false } = params;
      const { key, label, cwd, model, sendPolicy, delivery, keepMetadata } = params;
      const settings = { key, label, cwd, model, sendPolicy, delivery, keepMetadata };
      if (model !== undefined) parseModel(model);
      const { agentId } = askerOf(deps, params);
      // What reads the formats of others is loaded when it is wanted.
      const [{ sourcesAmong }, { checkNamesOne, importAll }] = await Promise.all([
        import("../../../sessions/import-sources.ts"),
        import("../../../sessions/import-sources.ts"),
      ]);
      const sources = sourcesAmong(files, agentId);
      checkNamesOne(settings, sources);
      const importer = new SessionImporter(deps.store.sessions, scopeOf(call), {
        ...{ agentId, dryRun, settings, clock: deps.clock },
        cwdFor: (agent, wanted) =>
          chosenCwd(wanted, (path) =>
            deps.files.resolveCwd({ userId: call.userId, agentId: agent }, path, "operator"),
          ),
      });
      return importAll(importer, sources, from);
    },
  };
}
