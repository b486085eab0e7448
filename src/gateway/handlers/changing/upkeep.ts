import { SkeinError } from "../../../core/errors.ts";
import { present } from "../../../core/present.ts";
import { decisionPayload, explainedPayload } from "../../../sessions/explain-maintenance.ts";
import { runMaintenance } from "../../../sessions/maintain.ts";
import { listUsers } from "../../../sessions/users.ts";
import type { FolderDeps, HandlersOf, TokenDeps } from "../../calls/contract.ts";
import { everyUserOf, findRemoved, lookFor } from "../shared/session-of.ts";
import { pendingErase } from "./removing.ts";

/** A user that is gone takes its tokens along. */
export type UpkeepDeps = FolderDeps & Pick<TokenDeps, "tokens">;

/** What looks after the folder as a whole, whoever's the sessions are. */
export function upkeepHandlers(
  deps: UpkeepDeps,
): HandlersOf<"maintenance.run" | "config.get" | "config.reload" | "users.list" | "users.remove"> {
  return {
    "maintenance.run": async ({ dryRun = false, explain, agentId }, call) => {
      const { store, config, clock, runs } = deps;
      const rules = config.session.maintenance;
      const work = { store, users: deps.users(), rules, now: clock.now(), runs, signal: call.signal };
      const named = explain === undefined ? null : { key: explain, agentId };
      const session =
        named === null
          ? null
          : ((await lookFor(deps, call, named)) ?? (await findRemoved(deps, call, named)));
      const report = await runMaintenance(work, { dryRun, ...present({ explainUid: session?.uid }) });
      return {
        mode: report.mode,
        decisions: report.decisions.map(decisionPayload),
        done: report.done.map(decisionPayload),
        ...explainedPayload(session, report.explained),
      };
    },

    "config.get": async () => {
      const { effectiveConfigText } = await import("../../../config/effective.ts");
      // Where there was a mistake, nothing was opened.
      return {
        ...present({ file: deps.loaded.file }),
        problems: [],
        effective: effectiveConfigText(deps.loaded),
        ...(deps.loaded.waiting === undefined ? {} : { waiting: [...deps.loaded.waiting] }),
      };
    },

    "config.reload": async () => {
      if (deps.reload !== undefined) return deps.reload();
      throw new SkeinError("unavailable", {
        problem: "No gateway runs on this folder",
        advice: "Start one with `skein start`; it reads the whole configuration",
      });
    },

    "users.list": async (page) =>
      listUsers({ ...everyUserOf(deps), runs: deps.runs, tokens: deps.tokens }, page),

    "users.remove": async ({ userId }) => {
      // First of all nobody comes in for that user any more, who could begin a session behind our back.
      const tokens = deps.tokens.removeUser(userId);
      const { sessions } = await deps.store.purgeUser(userId);
      const found = sessions + tokens.length > 0 ? {} : ({ found: false } as const);
      return { userId, sessions, ...found, ...pendingErase(deps) };
    },
  };
}
