import { present } from "../../../core/present.ts";
import { UsageReports } from "../../../sessions/usage-report.ts";
import type { FolderDeps, HandlersOf } from "../../calls/contract.ts";
import { scopeOf } from "../shared/session-of.ts";
import { findListed } from "./find.ts";

/** What was spent. One book for all calls: what was read once is read again only when it has changed. */
export function usageHandlers(deps: FolderDeps): HandlersOf<"sessions.usage"> {
  const reports = new UsageReports(deps.store.sessions);
  return {
    "sessions.usage": async ({ since, until, by = [], timeZone, key, agentId }, call) => {
      const session = key === undefined ? null : await findListed(deps, call, { key, agentId });
      const query = { by, ...present({ since, until, timeZone, session }) };
      return reports.report(scopeOf(call, agentId), query, deps.clock.now(), call.signal);
    },
  };
}
