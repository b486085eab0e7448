import { userInfo } from "node:os";
import { SkeinError } from "../../core/errors.ts";
import type { AbortedPayload, RunPayload } from "../../protocol/runs.ts";
import { approvalRow, runRow } from "../../sessions/skein/run-views.ts";
import type { OpenSkein } from "../folder/with-skein.ts";
import { withSkein } from "../folder/with-skein.ts";
import { shownCost } from "../output/amounts.ts";
import type { AnswerLine } from "../output/answer.ts";
import { answer } from "../output/answer.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { safeText } from "../output/safe-stream.ts";
import type { Terminal } from "../output/terminal.ts";
import { shownTime } from "../output/times.ts";
import { whyItWaits } from "../output/waiting.ts";

/** Everything that is known of one run. */
export async function showRun(terminal: Terminal, runId: string, options: GlobalOptions): Promise<void> {
  await withSkein(terminal, options, { workers: false }, async (open) => {
    const payload = await runPayload(open, runId);
    answer(terminal, options, payload, linesOf(payload));
    const { reply } = payload.run;
    if (options.json !== true && reply !== undefined && reply !== "") terminal.out(`\n${safeText(reply)}\n`);
  });
}

async function runPayload({ skein, userId, toType }: OpenSkein, runId: string): Promise<RunPayload> {
  const run = await skein.run(runId, userId);
  if (run === null) {
    const advice = `Ended runs are known for 30 days; see ${toType("runs", "ls")}`;
    throw new SkeinError("not_found", { what: "Run", name: runId, advice });
  }
  const asked = (await skein.approvals(userId)).filter((each) => each.runId === runId);
  return { run: runRow(run, await skein.waits(runId)), approvals: asked.map(approvalRow) };
}

function linesOf({ run, approvals }: RunPayload): AnswerLine[] {
  const { usage, error } = run;
  const told: [string, string | undefined][] = [
    ["state", run.state],
    ["waits", whyItWaits(run, approvals)],
    ["session", `${run.sessionKey} (${run.sessionId})`],
    ["said", run.preview],
    ["lane", `${run.lane}, ${run.kind}, ${run.queueMode}`],
    ["model", run.model],
    ["root", run.hops === 0 ? run.rootId : `${run.rootId} (${run.hops} hops)`],
    ["started by", run.startedBy],
    ["accepted", shownTime(run.createdAt)],
    ["started", run.startedAt === undefined ? undefined : shownTime(run.startedAt)],
    ["ended", run.endedAt === undefined ? undefined : shownTime(run.endedAt)],
    ["owner lost", run.lost === undefined ? undefined : String(run.lost)],
    ["tokens", usage.totalTokens === 0 ? undefined : String(usage.totalTokens)],
    ["cost", shownCost(usage.costUsd ?? null)],
    ["error", error === undefined ? undefined : `${error.message} [${error.code}]`],
    ...approvals.map(({ approvalId, toolName }): [string, string] => ["asks", `${toolName} (${approvalId})`]),
  ];
  const lines = told.flatMap(([title, text]) =>
    text === undefined || text === "" ? [] : [[title, text] as const],
  );
  return [`run ${run.runId}`, ...lines];
}

export async function abortRun(terminal: Terminal, runId: string, options: GlobalOptions): Promise<void> {
  await withSkein(terminal, options, { workers: false }, async ({ skein, userId }) => {
    const state = await skein.abort(runId, userId);
    const payload: AbortedPayload = { runId, state };
    const isOpen = state === "running" || state === "waiting";
    answer(terminal, options, payload, [
      isOpen ? "asked to stop; whoever runs it hears of it at once" : `the run is ${state}`,
    ]);
  });
}

/** Lets a tool call be made, or not. The first answer stands, and is told whosever it was. */
export async function resolveApproval(
  terminal: Terminal,
  approvalId: string,
  wanted: "approved" | "denied",
  options: GlobalOptions,
): Promise<void> {
  await withSkein(terminal, options, { workers: false }, async ({ skein, userId }) => {
    const approval = await skein.resolveApproval(approvalId, wanted, byWhom(terminal), userId);
    const { toolName, answer: stands, by } = approval;
    if (stands !== wanted) {
      const problem = `${toolName} was ${stands ?? "not answered"} before${by === null ? "" : `, by ${by}`}`;
      throw new SkeinError("conflict", {
        problem,
        advice: "The first answer stands; ask the session to try again",
      });
    }
    answer(terminal, options, approvalRow(approval), [`${toolName} is ${stands}`, ["run", approval.runId]]);
  });
}

function byWhom({ env }: Terminal): string {
  return `cli:${env.USER ?? env.USERNAME ?? userInfo().username}`;
}
