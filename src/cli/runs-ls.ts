import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { ApprovalPayload, RunListPayload, RunRowPayload } from "../protocol/runs.ts";
import type { RunState } from "../runs/run.ts";
import { endStates, openStates } from "../runs/states.ts";
import type { CommandContext } from "./command.ts";
import { action, allUsersOption, examples, sessionHelp, upTo, wholeNumber } from "./command.ts";
import { resolveRef } from "./connection/resolve-session.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { printPayload } from "./output/answer.ts";
import {
  describeApp,
  formatAge,
  formatCost,
  formatCount,
  isLostRun,
  stateText,
  waitReason,
} from "./output/format.ts";
import type { AllUsersOption, Invocation } from "./output/invocation.ts";
import { commandLine, userFilter } from "./output/invocation.ts";
import type { Column } from "./output/table.ts";
import { printList, printTable, withUserColumn } from "./output/table.ts";
import { oneLine, paint, printNote, wholeLine } from "./output/terminal.ts";

export function registerRunsLs(runs: Command, context: CommandContext): void {
  runs
    .command("ls")
    .description("List runs, newest first, with what each is waiting for, and pending approvals.")
    .option(
      "--state <states>",
      "only these states, separated by commas; open and ended each match several states, and lost matches lost input that can be retried",
    )
    .option("--session <ref>", `only for ${sessionHelp}`)
    .option("--limit <number>", "maximum number of runs, up to 500 (default: 50)", upTo(500))
    .option("--before <seq>", "list older runs, starting where the previous list ended", wholeNumber)
    .addOption(allUsersOption())
    .addHelpText(
      "after",
      examples("skein runs ls", "skein runs ls --session trip --state open,error --limit 10"),
    )
    .action(action(context, listRuns));
}

export function registerApprovals(approvals: Command, context: CommandContext): void {
  approvals.addHelpText("after", examples("skein approvals", "skein approvals ls --all-users --json"));
  approvals
    .command("ls", { isDefault: true })
    .description(
      "List tool calls that are waiting for approval, newest first. Answer with `runs approve` or `runs deny`.",
    )
    .option("--session <ref>", `only for ${sessionHelp}`)
    .option("--all", "include answered requests")
    .option("--limit <number>", "maximum number of approvals, up to 500 (default: 100)", upTo(500))
    .addOption(allUsersOption())
    .addHelpText("after", examples("skein approvals ls", "skein approvals ls --all --limit 10"))
    .action(action(context, listApprovals));
}

interface RunsListOptions extends AllUsersOption {
  readonly state?: string;
  readonly session?: string;
  readonly limit?: number;
  readonly before?: number;
}

const defaultLimit = 50;
const pageSize = 500;

async function listRuns(cli: Invocation<RunsListOptions>): Promise<void> {
  const { state } = cli.options;
  const isOfLost = state?.trim().toLowerCase() === "lost";
  const states = state === undefined || isOfLost ? undefined : statesOf(state);
  await withSkeinCalls(cli, async (open) => {
    const payload = await fetchRuns(open, cli, isOfLost ? { lost: true } : present({ states }));
    printPayload(cli, payload, () => printRuns(cli, open, payload));
  });
}

function statesOf(text: string): RunState[] {
  const known = [...openStates, ...endStates];
  return text.split(",").flatMap((each) => {
    const name = each.trim().toLowerCase();
    if (name === "open") return [...openStates];
    if (name === "ended") return [...endStates];
    const state = known.find((one) => one === name);
    if (state !== undefined) return [state];
    const advice = `Use ${known.join(", ")}; open and ended each match several states, and lost must be used alone`;
    throw new SkeinError("invalid_arguments", { problem: `"${each}" is not a run state`, advice });
  });
}

/** Fetches as many pages as the limit needs. */
async function fetchRuns(
  open: OpenSkeinCalls,
  cli: Invocation<RunsListOptions>,
  which: { readonly states?: RunState[]; readonly lost?: boolean },
): Promise<RunListPayload> {
  const { session, limit = defaultLimit, before: first } = cli.options;
  const sessionKey = session === undefined ? undefined : (await resolveRef(open, session)).key;
  const query = { ...which, ...userFilter(cli), ...present({ sessionKey }) };
  const runs: RunRowPayload[] = [];
  for (let before = first; ; ) {
    const page = { limit: Math.min(limit - runs.length, pageSize), ...present({ before }) };
    const listed = await open.calls.call("runs.list", { ...page, ...query });
    runs.push(...listed.runs);
    before = listed.nextBefore;
    if (before === undefined || runs.length >= limit) return { ...listed, count: runs.length, runs };
  }
}

function printRuns(
  cli: Invocation<RunsListOptions>,
  { asker }: OpenSkeinCalls,
  { runs, approvals, nextBefore }: RunListPayload,
): void {
  const { terminal } = cli;
  const shown = columns((key) => displayKey(key, asker), approvals, terminal.now());
  if (runs.length === 0) terminal.out("no runs\n");
  else printTable(terminal, withUserColumn(cli, shown), runs);
  if (nextBefore !== undefined) printNote(terminal, `more: --before ${nextBefore}`);
  for (const run of runs.filter(isLostRun)) printRemedy(cli, ["red", "lost", run.preview], run, "retry");
  for (const run of runs.filter(({ waitsForApp }) => waitsForApp !== undefined))
    printRemedy(cli, ["yellow", "waits", `for ${describeApp(run)}: ${run.preview}`], run, "release");
  printApprovals(cli, approvals);
}

function printRemedy(
  cli: Invocation,
  [color, word, text]: readonly [color: "red" | "yellow", word: string, text: string],
  { userId, runId }: RunRowPayload,
  command: "retry" | "release",
): void {
  const { terminal } = cli;
  terminal.out(`${paint(terminal, color, word)}  ${oneLine(text, Math.max(20, terminal.columns - 10))}\n`);
  printCommand(cli, userId, ["runs", command, runId]);
}

/** Prints pending approvals, each with the command that approves it. */
function printApprovals(cli: Invocation, approvals: readonly ApprovalPayload[]): void {
  const { terminal } = cli;
  const now = terminal.now();
  for (const { approvalId, toolName, arguments: args, expiresAt, userId } of approvals) {
    const left = Math.max(0, Math.ceil((expiresAt - now) / 1000));
    const call = oneLine(`${toolName} ${JSON.stringify(args)}`, Math.max(20, terminal.columns - 30));
    terminal.out(`${paint(terminal, "yellow", "asks")}  ${call}  (${left} s left)\n`);
    printCommand(cli, userId, ["runs", "approve", approvalId]);
  }
}

/** Escaped because user IDs can contain any character. */
function printCommand(
  { terminal, options }: Invocation,
  userId: string | undefined,
  words: readonly string[],
): void {
  const line = commandLine({ terminal, options: { ...options, ...present({ user: userId }) } }, ...words);
  terminal.out(`      ${paint(terminal, "dim", wholeLine(line))}\n`);
}

function columns(
  shown: (key: string) => string,
  approvals: readonly ApprovalPayload[],
  now: number,
): Column<RunRowPayload>[] {
  const tokens = (count: number) => (count === 0 ? "" : formatCount(count));
  return [
    { title: "RUN", text: ({ runId }) => runId, whole: true },
    { title: "STATE", text: stateText },
    { title: "SESSION", text: ({ sessionKey }) => shown(sessionKey), whole: true },
    { title: "LANE", text: ({ lane }) => lane, spare: 4 },
    { title: "WAITS", text: (run) => waitReason(run, approvals), least: 16 },
    { title: "TOKENS", text: ({ usage }) => tokens(usage.totalTokens), align: "right", spare: 2 },
    { title: "COST", text: ({ usage }) => formatCost(usage.costUsd ?? null), align: "right", spare: 1 },
    { title: "AGE", text: ({ createdAt }) => formatAge(now - createdAt), align: "right" },
  ];
}

interface ApprovalsListOptions extends AllUsersOption {
  readonly session?: string;
  readonly all?: boolean;
  readonly limit?: number;
}

async function listApprovals(cli: Invocation<ApprovalsListOptions>): Promise<void> {
  const { session, all, limit } = cli.options;
  const whose = userFilter(cli);
  await withSkeinCalls(cli, async (open) => {
    const sessionKey = session === undefined ? undefined : (await resolveRef(open, session)).key;
    const query = present({ sessionKey, limit, open: all === true ? false : undefined });
    const payload = await open.calls.call("approvals.list", { ...query, ...whose });
    const now = cli.terminal.now();
    const shown: Column<ApprovalPayload>[] = [
      { title: "APPROVAL", text: ({ approvalId }) => approvalId, whole: true },
      { title: "ANSWER", text: ({ answer }) => answer ?? "open" },
      { title: "TOOL", text: ({ toolName }) => toolName },
      { title: "SESSION", text: ({ sessionKey: key }) => displayKey(key, open.asker), whole: true },
      { title: "RUN", text: ({ runId }) => runId, whole: true },
      { title: "AGE", text: ({ requestedAt }) => formatAge(now - requestedAt), align: "right" },
    ];
    const rows = payload.approvals;
    printList(cli, payload, { columns: withUserColumn(cli, shown), rows, empty: "no approvals" });
    if (cli.options.json !== true)
      printApprovals(
        cli,
        rows.filter(({ answer }) => answer === undefined),
      );
  });
}
