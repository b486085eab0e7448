import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { displayKey } from "../../core/references.ts";
import type { ApprovalPayload, RunListPayload, RunRowPayload } from "../../protocol/runs.ts";
import type { RunState } from "../../runs/contract.ts";
import { approvalRow, runRow } from "../../sessions/skein/run-views.ts";
import { findSession } from "../folder/find-session.ts";
import type { OpenSkein } from "../folder/with-skein.ts";
import { withSkein } from "../folder/with-skein.ts";
import { shownAge, shownCost, shownCount } from "../output/amounts.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Column } from "../output/table.ts";
import { printTable } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson } from "../output/terminal.ts";
import { whyItWaits } from "../output/waiting.ts";

export interface RunsListOptions extends GlobalOptions {
  readonly state?: string;
  readonly session?: string;
  readonly limit?: number;
  readonly before?: number;
}

const open: readonly RunState[] = ["queued", "running", "waiting", "sleeping"];
const ended: readonly RunState[] = ["ok", "error", "timeout", "aborted", "merged"];
const defaultLimit = 50;

/** Lists runs, the last accepted first, and the approvals that are open. */
export async function listRuns(terminal: Terminal, options: RunsListOptions): Promise<void> {
  const states = options.state === undefined ? undefined : statesOf(options.state);
  await withSkein(terminal, options, { workers: false }, async (skein) => {
    const payload = await runList(skein, states, options);
    if (options.json === true) printJson(terminal, payload);
    else print(terminal, skein, payload);
  });
}

function statesOf(text: string): RunState[] {
  const known = [...open, ...ended];
  return text.split(",").flatMap((each) => {
    const name = each.trim().toLowerCase();
    if (name === "open") return [...open];
    if (name === "ended") return [...ended];
    const state = known.find((one) => one === name);
    if (state !== undefined) return [state];
    const advice = `The states are ${known.join(", ")}; open and ended stand for several`;
    throw new SkeinError("invalid_arguments", { problem: `"${each}" is no state of a run`, advice });
  });
}

async function runList(
  folder: OpenSkein,
  states: readonly RunState[] | undefined,
  { session, limit = defaultLimit, before }: RunsListOptions,
): Promise<RunListPayload> {
  const { skein, userId } = folder;
  const sessionUid = session === undefined ? undefined : (await findSession(folder, session)).uid;
  const runs = await skein.runs({ ...present({ states, sessionUid, before }), limit: limit + 1 }, userId);
  const shown = runs.slice(0, limit);
  const rows = await Promise.all(shown.map(async (run) => runRow(run, await skein.waits(run.runId))));
  const mine = await skein.approvals(userId);
  const approvals = sessionUid === undefined ? mine : mine.filter((each) => each.session.uid === sessionUid);
  const nextBefore = runs.length > limit ? shown.at(-1)?.seq : undefined;
  return {
    count: rows.length,
    runs: rows,
    approvals: approvals.map(approvalRow),
    ...present({ nextBefore }),
  };
}

function print(terminal: Terminal, { asker, toType }: OpenSkein, payload: RunListPayload): void {
  const { runs, approvals, nextBefore } = payload;
  const now = terminal.now();
  if (runs.length === 0) terminal.out("no runs\n");
  else
    printTable(
      terminal,
      columns((key) => displayKey(key, asker), approvals, now),
      runs,
    );
  if (nextBefore !== undefined) note(terminal, `more: --before ${nextBefore}`);
  for (const { approvalId, toolName, arguments: args, expiresAt } of approvals) {
    const left = Math.max(0, Math.ceil((expiresAt - now) / 1000));
    const call = oneLine(`${toolName} ${JSON.stringify(args)}`, Math.max(20, terminal.columns - 30));
    terminal.out(`${paint(terminal, "yellow", "asks")}  ${call}  (${left} s left)\n`);
    note(terminal, `      ${toType("runs", "approve", approvalId)}`);
  }
}

function columns(
  shown: (key: string) => string,
  approvals: readonly ApprovalPayload[],
  now: number,
): Column<RunRowPayload>[] {
  return [
    { title: "RUN", text: ({ runId }) => runId },
    { title: "STATE", text: ({ state }) => state },
    { title: "SESSION", text: ({ sessionKey }) => shown(sessionKey), least: 10 },
    { title: "LANE", text: ({ lane }) => lane, spare: 4 },
    { title: "WAITS", text: (run) => whyItWaits(run, approvals), least: 16 },
    { title: "TOKENS", text: ({ usage }) => tokens(usage.totalTokens), align: "right", spare: 2 },
    { title: "COST", text: ({ usage }) => shownCost(usage.costUsd ?? null), align: "right", spare: 1 },
    { title: "AGE", text: ({ createdAt }) => shownAge(now - createdAt), align: "right" },
  ];
}

function tokens(count: number): string {
  return count === 0 ? "" : shownCount(count);
}

function note(terminal: Terminal, text: string): void {
  terminal.out(`${paint(terminal, "dim", text)}\n`);
}
