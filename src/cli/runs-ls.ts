import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { ApprovalPayload, RunListPayload, RunRowPayload } from "../protocol/runs.ts";
import type { RunState } from "../runs/run.ts";
import { endStates, openStates } from "../runs/states.ts";
import type { CommandContext } from "./command.ts";
import { allUsersOption, examples, sessionHelp, upTo, wholeNumber } from "./command.ts";
import { resolveRef } from "./connection/resolve-session.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import {
  describeApp,
  formatAge,
  formatCost,
  formatCount,
  isLostRun,
  stateText,
  waitReason,
} from "./output/format.ts";
import type { AllUsersOption, GlobalOptions } from "./output/global-options.ts";
import { commandLine, userColumn, userFilter } from "./output/global-options.ts";
import type { Column } from "./output/table.ts";
import { printTable } from "./output/table.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, printJson, printNote, wholeLine } from "./output/terminal.ts";

export function registerRunsLs(runs: Command, { terminal }: CommandContext): void {
  runs
    .command("ls")
    .description("List runs, newest first, with what they wait for, and the open approval requests.")
    .option(
      "--state <states>",
      "only these states, with commas; open and ended stand for several; lost: lost input that can be retried",
    )
    .option("--session <ref>", `only of ${sessionHelp}`)
    .option("--limit <number>", "at most this many runs, up to 500 (default: 50)", upTo(500))
    .option("--before <seq>", "older runs, continuing after the end of a list", wholeNumber)
    .addOption(allUsersOption())
    .addHelpText(
      "after",
      examples("skein runs ls", "skein runs ls --session trip --state open,error --limit 10"),
    )
    .action((_, command: Command) => listRuns(terminal, command.optsWithGlobals()));
}

export function registerApprovals(approvals: Command, { terminal }: CommandContext): void {
  approvals.addHelpText("after", examples("skein approvals", "skein approvals ls --all-users --json"));
  approvals
    .command("ls", { isDefault: true })
    .description(
      "List tool calls that wait for approval, newest first. Answer with `runs approve` or `runs deny`.",
    )
    .option("--session <ref>", `only of ${sessionHelp}`)
    .option("--all", "answered ones too")
    .option("--limit <number>", "at most this many approvals, up to 500 (default: 100)", upTo(500))
    .addOption(allUsersOption())
    .addHelpText("after", examples("skein approvals ls", "skein approvals ls --all --limit 10"))
    .action((_, command: Command) => listApprovals(terminal, command.optsWithGlobals()));
}

interface RunsListOptions extends GlobalOptions, AllUsersOption {
  readonly state?: string;
  readonly session?: string;
  readonly limit?: number;
  readonly before?: number;
}

const defaultLimit = 50;
const pageSize = 500;

async function listRuns(terminal: Terminal, options: RunsListOptions): Promise<void> {
  const isOfLost = options.state?.trim().toLowerCase() === "lost";
  const states = options.state === undefined || isOfLost ? undefined : statesOf(options.state);
  await withSkeinCalls(terminal, options, { workers: false }, async (skein) => {
    const payload = await runList(skein, isOfLost ? { lost: true } : present({ states }), options);
    if (options.json === true) printJson(terminal, payload);
    else printRuns(terminal, skein, payload, options);
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
    const advice = `The states are ${known.join(", ")}; open and ended stand for several, and lost alone for lost input`;
    throw new SkeinError("invalid_arguments", { problem: `"${each}" is not a run state`, advice });
  });
}

/** Fetches as many pages as the limit needs. */
async function runList(
  open: OpenSkeinCalls,
  which: { readonly states?: RunState[]; readonly lost?: boolean },
  options: RunsListOptions,
): Promise<RunListPayload> {
  const { session, limit = defaultLimit, before: first } = options;
  const { calls } = open;
  const whose = userFilter(options);
  const sessionKey = session === undefined ? undefined : (await resolveRef(open, session)).key;
  const runs: RunRowPayload[] = [];
  for (let before = first; ; ) {
    const page = { limit: Math.min(limit - runs.length, pageSize), ...present({ before }) };
    const listed = await calls.call("runs.list", { ...page, ...which, ...whose, ...present({ sessionKey }) });
    runs.push(...listed.runs);
    before = listed.nextBefore;
    if (before === undefined || runs.length >= limit) return { ...listed, count: runs.length, runs };
  }
}

function printRuns(
  terminal: Terminal,
  { asker }: OpenSkeinCalls,
  payload: RunListPayload,
  options: RunsListOptions,
): void {
  const { runs, approvals, nextBefore } = payload;
  const now = terminal.now();
  const shown = columns((key) => displayKey(key, asker), approvals, now);
  if (runs.length === 0) terminal.out("no runs\n");
  else printTable(terminal, options.allUsers === true ? withUserColumn(shown) : shown, runs);
  if (nextBefore !== undefined) printNote(terminal, `more: --before ${nextBefore}`);
  for (const { runId, preview, userId } of runs.filter(isLostRun)) {
    terminal.out(
      `${paint(terminal, "red", "lost")}  ${oneLine(preview, Math.max(20, terminal.columns - 10))}\n`,
    );
    printCommand(terminal, { ...options, ...present({ user: userId }) }, ["runs", "retry", runId]);
  }
  for (const run of runs.filter(({ waitsForApp }) => waitsForApp !== undefined)) {
    const text = `${describeApp(run)} runs it: ${run.preview}`;
    terminal.out(
      `${paint(terminal, "yellow", "waits")}  ${oneLine(text, Math.max(20, terminal.columns - 10))}\n`,
    );
    printCommand(terminal, { ...options, ...present({ user: run.userId }) }, ["runs", "release", run.runId]);
  }
  printApprovals(terminal, approvals, options);
}

/** Prints open approvals, each with the command that approves it. */
function printApprovals(
  terminal: Terminal,
  approvals: readonly ApprovalPayload[],
  options: GlobalOptions,
): void {
  const now = terminal.now();
  for (const { approvalId, toolName, arguments: args, expiresAt, userId } of approvals) {
    const left = Math.max(0, Math.ceil((expiresAt - now) / 1000));
    const call = oneLine(`${toolName} ${JSON.stringify(args)}`, Math.max(20, terminal.columns - 30));
    terminal.out(`${paint(terminal, "yellow", "asks")}  ${call}  (${left} s left)\n`);
    printCommand(terminal, { ...options, ...present({ user: userId }) }, ["runs", "approve", approvalId]);
  }
}

/** Inserts the user after the ID. */
export function withUserColumn<Row extends { readonly userId?: string }>([
  id,
  ...columns
]: readonly Column<Row>[]): Column<Row>[] {
  return [...(id === undefined ? [] : [id]), userColumn, ...columns];
}

function columns(
  shown: (key: string) => string,
  approvals: readonly ApprovalPayload[],
  now: number,
): Column<RunRowPayload>[] {
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

function tokens(count: number): string {
  return count === 0 ? "" : formatCount(count);
}

/** Escaped, because user IDs can contain any character. */
function printCommand(terminal: Terminal, options: GlobalOptions, words: readonly string[]): void {
  terminal.out(`      ${paint(terminal, "dim", wholeLine(commandLine(terminal, options, words)))}\n`);
}

interface ApprovalsListOptions extends GlobalOptions, AllUsersOption {
  readonly session?: string;
  readonly all?: boolean;
  readonly limit?: number;
}

async function listApprovals(terminal: Terminal, options: ApprovalsListOptions): Promise<void> {
  const { session, all, limit } = options;
  const whose = userFilter(options);
  await withSkeinCalls(terminal, options, { workers: false }, async (open) => {
    const sessionKey = session === undefined ? undefined : (await resolveRef(open, session)).key;
    const query = present({ sessionKey, limit, open: all === true ? false : undefined });
    const payload = await open.calls.call("approvals.list", { ...query, ...whose });
    if (options.json === true) printJson(terminal, payload);
    else if (payload.count === 0) terminal.out("no approvals\n");
    else {
      const now = terminal.now();
      const shown: Column<ApprovalPayload>[] = [
        { title: "APPROVAL", text: ({ approvalId }) => approvalId, whole: true },
        { title: "ANSWER", text: ({ answer }) => answer ?? "open" },
        { title: "TOOL", text: ({ toolName }) => toolName },
        { title: "SESSION", text: ({ sessionKey: key }) => displayKey(key, open.asker), whole: true },
        { title: "RUN", text: ({ runId }) => runId, whole: true },
        { title: "AGE", text: ({ requestedAt }) => formatAge(now - requestedAt), align: "right" },
      ];
      printTable(terminal, options.allUsers === true ? withUserColumn(shown) : shown, payload.approvals);
      const pending = payload.approvals.filter(({ answer }) => answer === undefined);
      printApprovals(terminal, pending, options);
    }
  });
}
