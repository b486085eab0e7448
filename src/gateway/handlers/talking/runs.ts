import { present } from "../../../core/present.ts";
import type { Params } from "../../../protocol/methods/method-table.ts";
import type { RunListPayload } from "../../../protocol/runs.ts";
import { noSuchRun } from "../../../sessions/run-error.ts";
import { inputText } from "../../../sessions/run-views.ts";
import type { Call, HandlersOf, SkeinDeps } from "../../calls/contract.ts";
import { findIfNamed } from "../shared/session-of.ts";
import { shownTo } from "./shown.ts";

type Method =
  | "runs.list"
  | "runs.get"
  | "runs.release"
  | "runs.retry"
  | "approvals.list"
  | "approvals.resolve";

/** Of every user together: no answer grows with the number of users. */
const mostApprovals = 500;

/** How runs stand, and the tool calls that wait for an approval. */
export function runHandlers(deps: SkeinDeps): HandlersOf<Method> {
  const { skein } = deps;
  return {
    "runs.list": (params, call) => runList(deps, call, params),
    "runs.get": async ({ runId }, call) => {
      const shown = shownTo(deps, call);
      const run = await skein.runs.get(runId, call.userId);
      if (run === null) throw noSuchRun(runId);
      const approvals = await skein.approvals.list({ runId, open: false }, call.userId);
      return {
        run: shown.run(run, await skein.waits(runId)),
        input: shown.value(inputText(run)),
        approvals: approvals.map(shown.approval),
        notes: (await skein.notes(run)).map(({ kind, note }) => ({ kind, note: shown.value(note) })),
      };
    },
    "runs.release": async ({ runId }, { userId }) => {
      const { session, state } = await skein.runs.release(runId, userId);
      return { runId, sessionKey: session.key, agentId: session.agentId, state };
    },
    "runs.retry": async ({ runId }, { userId }) => {
      const retry = await skein.runs.retry(runId, userId);
      const { session, state, retryOf } = retry;
      return { runId: retry.runId, retryOf: retryOf ?? runId, sessionKey: session.key, state };
    },
    "approvals.list": async (params, call) => {
      const { runId, open = true, limit = 100, allUsers } = params;
      const sessionUid = (await findIfNamed(deps, call, params))?.uid;
      const query = { open, limit, ...present({ runId, sessionUid }) };
      const found = await skein.approvals.list(query, allUsers === true ? undefined : call.userId);
      const approvals = found.toReversed().map(shownTo(deps, call).approval);
      return { count: approvals.length, approvals };
    },
    "approvals.resolve": async ({ approvalId, answer }, call) => {
      const { name, tokenId } = call.principal;
      const by = name === "" ? tokenId : name;
      return shownTo(deps, call).approval(await skein.approvals.resolve(approvalId, answer, by, call.userId));
    },
  };
}

async function runList(deps: SkeinDeps, call: Call, params: Params<"runs.list">): Promise<RunListPayload> {
  const { skein } = deps;
  const { states, rootId, startedBy, before, lost, waitsForApp, limit = 50, allUsers } = params;
  const userId = allUsers === true ? undefined : call.userId;
  const sessionUid = (await findIfNamed(deps, call, params))?.uid;
  const query = present({ states, sessionUid, rootId, startedBy, before, lost, waitsForApp });
  const runs = await skein.runs.list({ ...query, limit: limit + 1 }, userId);
  const page = runs.slice(0, limit);
  const shown = shownTo(deps, call);
  const waits = await skein.waitsOf(page.map(({ runId }) => runId));
  const rows = page.map((run) => shown.run(run, waits.get(run.runId) ?? null));
  const most = allUsers === true ? mostApprovals : null;
  const approvals = await skein.approvals.list(present({ sessionUid, limit: most }), userId);
  const nextBefore = runs.length > limit ? page.at(-1)?.seq : null;
  return {
    count: rows.length,
    runs: rows,
    approvals: approvals.map(shown.approval),
    ...present({ nextBefore }),
  };
}
