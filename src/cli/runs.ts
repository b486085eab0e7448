import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import type { RunPayload } from "../protocol/runs.ts";
import type { CommandContext } from "./command.ts";
import { action, examples } from "./command.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printAnswer, printLines, printPayload } from "./output/answer.ts";
import { formatCost, formatTime, isLostRun, safeText, stateText, waitReason } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { registerRunsLs } from "./runs-ls.ts";

/** IDs for the examples. The runs are the ones created by `send … --key order-17`, `order-18` and `order-19`. */
const exampleRun = "71784a37-767d-8ff4-8474-7668da850727";
const lostRun = "8f34080f-b77e-8310-ac37-5d44a2ca836d";
const waitingRun = "6892f418-3bd4-8ed5-b705-91c73433651e";
const exampleApproval = "7385348a-ec6b-8b5f-a1b3-c3116b9a7c78";

export function registerRuns(runs: Command, context: CommandContext): void {
  runs.addHelpText("after", examples("skein runs ls", "skein runs ls --state open --json"));
  registerRunsLs(runs, context);
  for (const { name, about, shown, act, list = "runs ls" } of runCommands) {
    runs
      .command(name)
      .description(about)
      .argument("<runId>", `the run's ID, as printed by \`${list}\``)
      .addHelpText("after", examples(...shown.map((words) => `skein runs ${name} ${words}`)))
      .action(action(context, act));
  }
  for (const [name, answer, about] of [
    ["approve", "approved", "Approve a pending tool call."],
    ["deny", "denied", "Deny a pending tool call."],
  ] as const) {
    runs
      .command(name)
      .description(`${about} The first answer is final.`)
      .argument("<approvalId>", "the approval request's ID, as printed by `runs ls`")
      .addHelpText("after", examples(`skein runs ${name} ${exampleApproval}`))
      .action(action(context, (cli, approvalId: string) => resolveApproval(cli, approvalId, answer)));
  }
}

interface RunCommand {
  readonly name: string;
  readonly about: string;
  readonly shown: readonly string[];
  act(cli: Invocation, runId: string): Promise<void>;
  readonly list?: string;
}

const runCommands: readonly RunCommand[] = [
  {
    name: "show",
    about: "Show a run's details and its reply.",
    shown: [exampleRun, `${exampleRun} --json`],
    act: showRun,
  },
  {
    name: "abort",
    about: "Abort a run, regardless of which process executes it. Its output so far is kept.",
    shown: [exampleRun],
    act: abortRun,
  },
  {
    name: "retry",
    about:
      "Retry a run that failed, timed out, or was lost or aborted. Running the command again returns the same retry.",
    shown: [lostRun],
    act: retryRun,
    list: "runs ls --state lost",
  },
  {
    name: "release",
    about: "Let any process execute a run that is waiting for an app. Its agent might lack that app's tools.",
    shown: [waitingRun],
    act: releaseRun,
  },
];

async function showRun(cli: Invocation, runId: string): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const payload = await calls.call("runs.get", { runId, ...user });
    printPayload(cli, payload, () => {
      const { reply = "" } = payload.run;
      printLines(cli.terminal, linesOf(payload));
      if (reply !== "") cli.terminal.out(`\n${safeText(reply)}\n`);
    });
  });
}

function linesOf({ run, input, approvals: asked, notes }: RunPayload): AnswerLine[] {
  const approvals = asked.filter((each) => each.answer === undefined);
  const { usage, error } = run;
  const time = (at: number | undefined) => (at === undefined ? undefined : formatTime(at));
  return [
    `run ${run.runId}`,
    ["state", stateText(run)],
    ["waits", waitReason(run, approvals) || undefined],
    ["session", `${run.sessionKey} (${run.sessionId})`],
    ["said", (isLostRun(run) ? input : run.preview) || undefined],
    ["lane", `${run.lane}, ${run.kind}, ${run.queueMode}`],
    ["model", run.model],
    ["root", run.hops === 0 ? run.rootId : `${run.rootId} (${run.hops} hops)`],
    ["started by", run.startedBy],
    ["accepted", formatTime(run.createdAt)],
    ["started", time(run.startedAt)],
    ["ended", time(run.endedAt)],
    ["retry of", run.retryOf],
    ["retried as", run.retriedAs],
    ["app", run.app],
    ["worker", run.worker === undefined ? undefined : `${run.worker.host}, process ${run.worker.pid}`],
    ["owner lost", run.lost === undefined ? undefined : String(run.lost)],
    ["tokens", usage.totalTokens === 0 ? undefined : String(usage.totalTokens)],
    ["cost", usage.costUsd === undefined ? "unknown" : formatCost(usage.costUsd) || undefined],
    ["error", error === undefined ? undefined : `${error.message} [${error.code}]`],
    ...notes.map(({ note }) => ["changed", note] as const),
    ...approvals.map(({ approvalId, toolName }) => ["asks", `${toolName} (${approvalId})`] as const),
  ];
}

async function abortRun(cli: Invocation, runId: string): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const payload = await calls.call("runs.abort", { runId, ...user });
    const isOpen = payload.state === "running" || payload.state === "waiting";
    printAnswer(cli, payload, [
      isOpen
        ? "abort requested; the process that executes the run has been notified"
        : `the run is ${payload.state}`,
    ]);
  });
}

async function retryRun(cli: Invocation, runId: string): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const payload = await calls.call("runs.retry", { runId, ...user });
    const { runId: retry, sessionKey, state } = payload;
    printAnswer(cli, payload, [
      `queued the input of ${runId} again`,
      ["run", retry],
      ["state", state],
      ["session", sessionKey],
    ]);
  });
}

async function releaseRun(cli: Invocation, runId: string): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const payload = await calls.call("runs.release", { runId, ...user });
    const { agentId, sessionKey, state } = payload;
    const isOpen = state === "queued" || state === "sleeping";
    printAnswer(cli, payload, [
      isOpen
        ? `any process that has the agent ${agentId} can now execute ${runId}`
        : `${runId} is not waiting for an app`,
      ["state", state],
      ["session", sessionKey],
    ]);
  });
}

/** The first decision is final, no matter who made it. */
async function resolveApproval(
  cli: Invocation,
  approvalId: string,
  wanted: "approved" | "denied",
): Promise<void> {
  await withSkeinCalls(cli, async ({ calls, user }) => {
    const approval = await calls.call("approvals.resolve", { approvalId, answer: wanted, ...user });
    const { toolName, answer, by } = approval;
    if (answer !== wanted) {
      const problem = `${toolName} was already ${answer ?? "closed without an answer"}${by === undefined ? "" : ` by ${by}`}`;
      const advice = "The first answer is final; ask the session to try again";
      throw new SkeinError("conflict", { problem, advice });
    }
    printAnswer(cli, approval, [`${toolName} is ${answer}`, ["run", approval.runId]]);
  });
}
