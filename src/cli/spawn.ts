import type { Command } from "commander";
import { Option } from "commander";
import { isRecord } from "../core/is-record.ts";
import { present } from "../core/present.ts";
import type { ToolResult } from "../tools/session-tool.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, wholeNumber } from "./command.ts";
import type { ExpectedChild } from "./connection/watch-run.ts";
import { ChildPrinter } from "./connection/watch-run.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printLines } from "./output/answer.ts";
import type { ExitCode } from "./output/errors.ts";
import { formatCount } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { pathFrom } from "./output/terminal.ts";
import { exitOf, printText, printToolResult } from "./output/tool-result.ts";
import { TurnPrinter } from "./output/turn-printer.ts";
import type { Watched } from "./tool.ts";
import { callTool, forSessionHelp } from "./tool.ts";

export function registerSpawn(command: Command, context: CommandContext): void {
  const choice = (flags: string, about: string, ...choices: readonly string[]) =>
    command.addOption(new Option(flags, about).choices(choices));
  command.argument("<task...>", "the task for the new session").option("--session <ref>", forSessionHelp);
  command.option(
    "--under <agentId>",
    "the agent for the new session (default: the spawning session's agent)",
  );
  choice(
    "--runtime <runtime>",
    "acp: --under names an external agent that supports the Agent Client Protocol",
    "subagent",
    "acp",
  );
  command
    .option("--resume <id>", "with --runtime acp: resume this session of the external agent")
    .option("--stream", "with --runtime acp: write progress notes to the spawning session")
    .option("--label <label>", "a label for the new session")
    .option("--model <provider/model>", "use this model; with --runtime acp, use the agent's own name for it")
    .option("--thinking <level>", "the thinking level; with --runtime acp, use the agent's own name for it");
  choice("--mode <mode>", "run: the session ends with its answer; session: it stays open", "run", "session");
  choice("--context <context>", "fork: start with the spawning session's conversation", "isolated", "fork");
  choice("--cleanup <cleanup>", "whether to keep the session after it has ended", "keep", "delete");
  command
    .option("--cwd <folder>", "the working directory (default: the spawning session's)")
    .option("--timeout <seconds>", "the maximum duration", wholeNumber)
    .option(
      "--key <idempotencyKey>",
      "an idempotency key: spawning again with the same key returns the same child session",
    )
    .option(
      "--background",
      "print the new session immediately; its result is announced to the spawning session",
    )
    .option("--no-wait", "exit once the task has been accepted; skein start runs it")
    .addHelpText(
      "after",
      examples(
        "skein spawn describe the gardens of Kyoto",
        "skein spawn describe the food of Kyoto --session trip --label kyoto-food --json",
        "skein spawn describe the temples of Kyoto --background",
        "skein spawn fix the failing test --runtime acp --under codex",
      ),
    )
    .action(action(context, spawnCommand));
}

interface SpawnOptions {
  readonly session?: string;
  readonly under?: string;
  readonly runtime?: "subagent" | "acp";
  readonly resume?: string;
  readonly stream?: boolean;
  readonly label?: string;
  readonly model?: string;
  readonly thinking?: string;
  readonly mode?: "run" | "session";
  readonly context?: "isolated" | "fork";
  readonly cleanup?: "keep" | "delete";
  readonly cwd?: string;
  readonly timeout?: number;
  readonly key?: string;
  readonly background?: boolean;
  /** `false` if `--no-wait` is set. */
  readonly wait?: boolean;
}

async function spawnCommand(cli: Invocation<SpawnOptions>, words: readonly string[]): Promise<void> {
  const { session: ref = "main", key, wait, json } = cli.options;
  const waits = wait !== false;
  const isShown = waits && json !== true && cli.terminal.redraws;
  const spawn = (open: OpenSkeinCalls) =>
    callTool(
      open,
      { name: "sessions_spawn", args: argumentsOf(cli, words), ref, key },
      {
        waits,
        show: (result) => printSpawned(cli, result),
        ...(isShown ? { watch: () => watchChild(open, { ref, task: words.join(" ") }) } : {}),
      },
    );
  await withSkeinCalls(cli, spawn, { workers: waits && "own", ref });
}

/** Prints the child's output on stderr while it runs. */
async function watchChild(open: OpenSkeinCalls, coming: ExpectedChild): Promise<Watched> {
  const printer = new TurnPrinter(open.terminal, { notes: "err", text: true, thinking: false, asides: true });
  const shown = await ChildPrinter.of(printer, open, coming);
  let childRun: string | null = null;
  return {
    beforeResult: async ({ outcome, runId }) => {
      childRun = typeof runId === "string" ? runId : null;
      // A child in the background has started but not finished.
      if (outcome === undefined || childRun === null) shown.pause();
      else await shown.end(childRun);
    },
    whenSettled: async () => {
      if (childRun !== null) await shown.end(childRun);
    },
    close: () => shown.close(),
  };
}

function argumentsOf({ terminal, options }: Invocation<SpawnOptions>, words: readonly string[]): object {
  const { under, runtime, resume, label, model, thinking, mode, context, cleanup, cwd, timeout } = options;
  return {
    task: words.join(" "),
    ...present({ runtime, resumeSessionId: resume, streamTo: options.stream === true ? "parent" : null }),
    ...present({ agentId: under, label, model, thinking, mode, context, cleanup }),
    ...present({ runTimeoutSeconds: timeout, cwd: cwd === undefined ? null : pathFrom(terminal, cwd) }),
    background: options.background === true || options.wait === false,
  };
}

function printSpawned(cli: Invocation<SpawnOptions>, result: ToolResult): ExitCode {
  const { terminal, options } = cli;
  if (options.json === true || exitOf(result) !== 0) {
    return printToolResult(cli, result) || endOf(result);
  }
  const { childSessionKey, agentSessionId, label, runId, mode, note, outcome, usage, result: reply } = result;
  const line = (title: string, value: unknown): AnswerLine => [
    title,
    value === undefined || typeof value === "string" ? value : JSON.stringify(value),
  ];
  printLines(terminal, [
    `spawned ${String(childSessionKey)}`,
    line("label", label),
    line("run", runId),
    line("mode", mode),
    line("agent's session", agentSessionId),
    line("note", outcome === undefined ? note : undefined),
    line("ended", outcome),
    line("tokens", tokensIn(usage)),
  ]);
  if (typeof reply === "string" && reply !== "") printText(terminal, reply);
  return endOf(result);
}

function tokensIn(usage: unknown): string | undefined {
  const count = isRecord(usage) ? usage.totalTokens : undefined;
  // ACP agents are not required to report usage.
  return typeof count === "number" && count > 0 ? formatCount(count) : undefined;
}

/** The command fails if the child failed. */
function endOf({ outcome }: ToolResult): ExitCode {
  return outcome === undefined || outcome === "ok" ? 0 : 1;
}
