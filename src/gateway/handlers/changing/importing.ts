import { SessionImporter } from "../../../sessions/import-session.ts";
import type { FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { askerOf, scopeOf } from "../shared/session-of.ts";

/** Sessions of other programs, by the contents of their files. */
export function importingHandlers(deps: FolderDeps): HandlersOf<"sessions.import"> {
  return {
    "sessions.import": async (params, call) => {
      const { files, from = null, dryRun = false } = params;
      const { agentId } = askerOf(deps, params);
      // What reads the formats of others is loaded when it is wanted.
      const [{ sourcesAmong }, { importAll }] = await Promise.all([
        import("../../../sessions/importing/given-files.ts"),
        import("../../../sessions/importing/sources.ts"),
      ]);
      const importer = new SessionImporter(deps.store.sessions, scopeOf(call), { agentId, dryRun });
      return importAll(importer, sourcesAmong(files, agentId), from);
    },
  };
}
