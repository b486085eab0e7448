import type { AbortedPayload } from "../../../protocol/runs.ts";
import type { Run } from "../../../runs/contract.ts";
import { openStates } from "../../../runs/states.ts";
import { noSuchRun } from "../../../sessions/run-error.ts";
import type { SessionRecord } from "../../../store/contract.ts";
import type { Call, HandlersOf, SkeinDeps } from "../../calls/contract.ts";
import { findSession } from "../shared/session-of.ts";

const most = 1000;

/** What ends runs before their time. */
export function abortingHandlers(deps: SkeinDeps): HandlersOf<"chat.abort" | "runs.abort"> {
  const { skein } = deps;
  return {
    "chat.abort": async (params, call) => {
      const { runId } = params;
      const session = await findSession(deps, call, params);
      const runs =
        runId === undefined ? await openIn(deps, call, session) : [await runIn(deps, call, session, runId)];
      const aborted: AbortedPayload[] = [];
      // The last accepted first: nothing that waits gets the turn of what is ended before it.
      for (const each of runs) {
        aborted.push({ runId: each.runId, state: await skein.runs.abort(each.runId, call.userId) });
      }
      return { sessionKey: session.key, runs: aborted };
    },
    "runs.abort": async ({ runId, reason }, { userId }) => ({
      runId,
      state: await skein.runs.abort(runId, userId, reason),
    }),
  };
}

/** Of another session it is as one that is not there. */
async function runIn(
  { skein }: SkeinDeps,
  { userId }: Call,
  session: SessionRecord,
  runId: string,
): Promise<Run> {
  const run = await skein.runs.get(runId, userId);
  if (run === null || run.session.uid !== session.uid) throw noSuchRun(runId);
  return run;
}

async function openIn(
  { skein }: SkeinDeps,
  { userId }: Call,
  { uid }: SessionRecord,
): Promise<readonly Run[]> {
  return skein.runs.list({ sessionUid: uid, states: openStates, limit: most }, userId);
}
