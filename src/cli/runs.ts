import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import type { RunPayload } from "../protocol/runs.ts";
import type { CommandContext } from "./command.ts";
import { examples } from "./command.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { answer } from "./output/answer.ts";
import { formatCost, formatTime, isLostRun, safeText, stateText, waitReason } from "./output/format.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { registerRunsLs } from "./runs-ls.ts";

/** Ids for the examples; the runs are those of `send … --key order-17`, `order-18` and `order-19`. */
const exampleRun = "71784a37-767d-8ff4-8474-7668da850727";
const lostRun = "8f34080f-b77e-8310-ac37-5d44a2ca836d";
const waitingRun = "6892f418-3bd4-8ed5-b705-91c73433651e";
const exampleApproval = "7385348a-ec6b-8b5f-a1b3-c3116b9a7c78";

export function registerRuns(runs: Command, context: CommandContext): void {
  const { terminal } = context;
  runs.addHelpText("after", examples("skein runs ls", "skein runs ls --state open --json"));
  registerRunsLs(runs, context);
  const aboutRun = (
    name: string,
    about: string,
    shown: readonly string[],
    act: (terminal: Terminal, runId: string, options: GlobalOptions) => Promise<void>,
    list = "runs ls",
  ) =>
    runs
      .command(name)
      .description(about)
      .argument("<runId>", `the run, as \`${list}\` prints it`)
      .addHelpText("after", examples(...shown.map((words) => `skein runs ${name} ${words}`)))
      .action((runId: string, _, command: Command) => act(terminal, runId, command.optsWithGlobals()));
  aboutRun(
    "show",
    "Show everything about a run, and its reply.",
    [exampleRun, `${exampleRun} --json`],
    showRun,
  );
  aboutRun(
    "abort",
    "Abort a run, in whatever process it runs. Its output so far is kept.",
    [exampleRun],
    abortRun,
  );
  aboutRun(
    "retry",
    "Queue the input of a run that was lost or stopped by a disk fault. Repeating the command returns the same retry.",
    [lostRun],
    retryRun,
    "runs ls --state lost",
  );
  aboutRun(
    "release",
    "Let any process execute a run that waits for an app. Its agent may lack the tools of that app.",
    [waitingRun],
    releaseRun,
  );
  for (const [name, answer, about] of [
    ["approve", "approved", "Approve a tool call that a run asks for."],
    ["deny", "denied", "Deny a tool call that a run asks for."],
  ] as const) {
    runs
      .command(name)
      .description(`${about} The first answer stands.`)
      .argument("<approvalId>", "the approval request, as `runs ls` prints it")
      .addHelpText("after", examples(`skein runs ${name} ${exampleApproval}`))
      .action((approvalId: string, _, command: Command) =>
        resolveApproval(terminal, approvalId, answer, command.optsWithGlobals()),
      );
  }
}

async function showRun(terminal: Terminal, runId: string, options: GlobalOptions): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async ({ calls, reader: { userId } }) => {
    const payload = await calls.call("runs.get", { runId, ...present({ userId }) });
    answer(terminal, options, payload, linesOf(payload));
    const { reply } = payload.run;
    if (options.json !== true && reply !== undefined && reply !== "") terminal.out(`\n${safeText(reply)}\n`);
  });
}

function linesOf({ run, input, approvals: asked, notes }: RunPayload): AnswerLine[] {
  const approvals = asked.filter((each) => each.answer === undefined);
  const { usage, error } = run;
  const told: [string, string | undefined][] = [
    ["state", stateText(run)],
    ["waits", waitReason(run, approvals)],
    ["session", `${run.sessionKey} (${run.sessionId})`],
    ["said", isLostRun(run) ? input : run.preview],
    ["lane", `${run.lane}, ${run.kind}, ${run.queueMode}`],
    ["model", run.model],
    ["root", run.hops === 0 ? run.rootId : `${run.rootId} (${run.hops} hops)`],
    ["started by", run.startedBy],
    ["accepted", formatTime(run.createdAt)],
    ["started", run.startedAt === undefined ? undefined : formatTime(run.startedAt)],
    ["ended", run.endedAt === undefined ? undefined : formatTime(run.endedAt)],
    ["retry of", run.retryOf],
    ["retried as", run.retriedAs],
    ["app", run.app],
    ["owner lost", run.lost === undefined ? undefined : String(run.lost)],
    ["tokens", usage.totalTokens === 0 ? undefined : String(usage.totalTokens)],
    ["cost", usage.costUsd === undefined ? "unknown" : formatCost(usage.costUsd)],
    ["error", error === undefined ? undefined : `${error.message} [${error.code}]`],
    ...notes.map(({ note }): [string, string] => ["changed", note]),
    ...approvals.map(({ approvalId, toolName }): [string, string] => ["asks", `${toolName} (${approvalId})`]),
  ];
  const lines = told.flatMap(([title, text]) =>
    text === undefined || text === "" ? [] : [[title, text] as const],
  );
  return [`run ${run.runId}`, ...lines];
}

async function abortRun(terminal: Terminal, runId: string, options: GlobalOptions): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async ({ calls, reader: { userId } }) => {
    const payload = await calls.call("runs.abort", { runId, ...present({ userId }) });
    const isOpen = payload.state === "running" || payload.state === "waiting";
    answer(terminal, options, payload, [
      isOpen ? "abort requested; the process that runs it is notified" : `the run is ${payload.state}`,
    ]);
  });
}

async function retryRun(terminal: Terminal, runId: string, options: GlobalOptions): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async ({ calls, reader: { userId } }) => {
    const payload = await calls.call("runs.retry", { runId, ...present({ userId }) });
    const { runId: retry, sessionKey, state } = payload;
    answer(terminal, options, payload, [
      `the input of ${runId} is queued again`,
      ["run", retry],
      ["state", state],
      ["session", sessionKey],
    ]);
  });
}

async function releaseRun(terminal: Terminal, runId: string, options: GlobalOptions): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async ({ calls, reader: { userId } }) => {
    const payload = await calls.call("runs.release", { runId, ...present({ userId }) });
    const { agentId, sessionKey, state } = payload;
    const isOpen = state === "queued" || state === "sleeping";
    answer(terminal, options, payload, [
      isOpen ? `any process that has the agent ${agentId} may run ${runId} now` : `${runId} waits for no app`,
      ["state", state],
      ["session", sessionKey],
    ]);
  });
}

/** The first answer stands, no matter who gave it. */
async function resolveApproval(
  terminal: Terminal,
  approvalId: string,
  wanted: "approved" | "denied",
  options: GlobalOptions,
): Promise<void> {
  await withSkeinCalls(terminal, options, { workers: false }, async ({ calls, reader: { userId } }) => {
    const params = { approvalId, answer: wanted, ...present({ userId }) };
    const approval = await calls.call("approvals.resolve", params);
    const { toolName, answer: stands, by } = approval;
    if (stands !== wanted) {
      const problem = `${toolName} was ${stands ?? "not answered"} before${by === undefined ? "" : `, by ${by}`}`;
      throw new SkeinError("conflict", {
        problem,
        advice: "The first answer stands; ask the session to try again",
      });
    }
    answer(terminal, options, approval, [`${toolName} is ${stands}`, ["run", approval.runId]]);
  });
}
