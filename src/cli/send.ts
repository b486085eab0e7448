import { text as readText } from "node:stream/consumers";
import type { Command } from "commander";
import { Option } from "commander";
import { createIdSource } from "../core/ids.ts";
import { present } from "../core/present.ts";
import { escapeToLine } from "../core/text.ts";
import { thinkingLevels } from "../core/thinking-levels.ts";
import type { Params } from "../protocol/method-table.ts";
import type { AcceptedPayload, RunRowPayload, SentPayload } from "../protocol/runs.ts";
import type { QueueMode } from "../runs/run.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, newSessionHelp, wholeNumber } from "./command.ts";
import { readImages, readMentionedImages } from "./connection/read-images.ts";
import { resolveOrNew } from "./connection/resolve-session.ts";
import {
  abortAll,
  announceApprovals,
  getRun,
  leftForText,
  waitUntilClaimedSettled,
  waitUntilEnded,
} from "./connection/wait-for-runs.ts";
import { RunPrinter } from "./connection/watch-run.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { printAnswer, printNotice, printPayload } from "./output/answer.ts";
import { CommandFailed } from "./output/errors.ts";
import { describeApp } from "./output/format.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import type { Terminal } from "./output/terminal.ts";
import { paint } from "./output/terminal.ts";
import { TurnPrinter } from "./output/turn-printer.ts";

export function registerSend(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", newSessionHelp)
    .argument("<text...>", "the message; - reads it from standard input")
    .option("--model <provider/model>", "use this model")
    .addOption(new Option("--thinking <level>", "the thinking level").choices(thinkingLevels))
    .option("--system <text>", "the system prompt for this turn, instead of the agent's")
    .addOption(
      new Option(
        "--queue <mode>",
        "what to do with the message if a turn is running (default: as configured)",
      ).choices(["steer", "followup", "interrupt"]),
    )
    .option(
      "--key <idempotencyKey>",
      "an idempotency key: sending again with the same key returns the same run",
    )
    .option("--timeout <seconds>", "the maximum duration of the run", wholeNumber)
    .option(
      "--image <file>",
      "attach an image; can be repeated",
      (file: string, files: readonly string[] = []) => [...files, file],
    )
    .option("--no-wait", "exit once the message has been accepted; skein start runs it")
    .addHelpText(
      "after",
      examples(
        'skein send main "plan three days in Kyoto"',
        "skein send agent:main:session:porto repeat good morning --json",
        "skein send trip describe the gardens --key gardens-3 --timeout 600",
        "skein send trip repeat hello --queue followup --no-wait",
      ),
    )
    .action(action(context, sendCommand));
}

interface SendCommandOptions {
  readonly model?: string;
  readonly system?: string;
  readonly thinking?: NonNullable<SendParams["thinking"]>;
  readonly queue?: QueueMode;
  readonly key?: string;
  readonly timeout?: number;
  readonly image?: readonly string[];
  /** `false` if `--no-wait` is set. */
  readonly wait?: boolean;
}

type SendParams = Params<"sessions.send">;

async function sendCommand(
  cli: Invocation<SendCommandOptions>,
  ref: string,
  words: readonly string[],
): Promise<void> {
  const waits = cli.options.wait !== false;
  const text = await readMessage(cli.terminal, words);
  const given = await sendOptions(cli);
  const sendTo = async (open: OpenSkeinCalls) => {
    const to = await resolveOrNew(open, ref);
    const mentioned = await readMentionedImages(open, to, text);
    const attachments = [...(given.attachments ?? []), ...mentioned];
    const params = { ...to, message: text, ...given, ...(attachments.length === 0 ? {} : { attachments }) };
    if (waits) return follow(open, params);
    const { runId, sessionKey } = await open.calls.call("sessions.send", params);
    const run = await getRun(open, runId);
    if (run?.waitsForApp !== undefined) return leaveToApp(cli, run);
    const payload: AcceptedPayload = { runId, status: "accepted", sessionKey };
    const left = `it will run with the next ${commandLine(cli, "start")} or the next message to this session`;
    printAnswer(cli, payload, [
      `accepted; ${open.store === null ? "the gateway will run it" : left}`,
      ["run", runId],
      ["see", commandLine(cli, "runs", "show", runId)],
    ]);
  };
  await withSkeinCalls(cli, sendTo, { workers: waits && "own", ref });
}

/** The session belongs to an app whose process might not be running, so the command does not wait. */
function leaveToApp(cli: Invocation, run: RunRowPayload): void {
  const { runId, sessionKey, waitsForApp } = run;
  const payload: AcceptedPayload = { runId, status: "accepted", sessionKey, ...present({ waitsForApp }) };
  printAnswer(cli, payload, [
    `accepted; waiting for ${describeApp(run)}, which defines the agent ${run.agentId}`,
    ["run", runId],
    ["see", commandLine(cli, "runs", "show", runId)],
    ["release", commandLine(cli, "runs", "release", runId)],
  ]);
}

async function readMessage(terminal: Terminal, words: readonly string[]): Promise<string> {
  const isPiped = words.length === 1 && words[0] === "-";
  const text = isPiped ? await readText(terminal.input().stream) : words.join(" ");
  return text.replace(/\n$/, "");
}

async function sendOptions({
  terminal,
  options,
}: Invocation<SendCommandOptions>): Promise<Omit<SendParams, "key" | "message">> {
  const { model, thinking, system, queue, key = createIdSource()(), timeout, image = [] } = options;
  if (model !== undefined) {
    const { parseModel } = await import("../transcript/model-table.ts");
    parseModel(model);
  }
  const attachments = await readImages(terminal, image);
  return {
    idempotencyKey: key,
    ...present({ model, thinking, system, queueMode: queue, runTimeoutSeconds: timeout }),
    ...(attachments.length === 0 ? {} : { attachments }),
  };
}

async function follow(open: OpenSkeinCalls, params: SendParams): Promise<void> {
  const { terminal, options } = open;
  const json = options.json === true;
  const isShown = !json && terminal.isWatched;
  const notes = !json && (terminal.isWatched || terminal.redraws) ? "err" : null;
  const printer = new TurnPrinter(terminal, { notes, text: isShown, thinking: false });
  const shown = isShown || notes !== null ? new RunPrinter(printer, open, params) : null;
  const accepted = Promise.withResolvers<string>();
  accepted.promise.catch(() => undefined);
  // Another Ctrl-C exits. The next process continues unfinished runs.
  const stopListening = terminal.onInterrupt(() => {
    stopListening();
    printer.note("aborting; press Ctrl-C again to quit");
    void abort(open, accepted.promise).catch((error: unknown) => printer.note(String(error), "✗"));
  });
  const approvals = await announceApprovals(open);
  try {
    await shown?.ready;
    const { runId } = await open.calls.call("sessions.send", params);
    accepted.resolve(runId);
    const run = await getRun(open, runId);
    if (run?.waitsForApp !== undefined) return leaveToApp(open, run);
    shown?.begin(runId, run?.mergedInto);
    const sent = await waitUntilEnded(open, runId);
    const isThere = (await shown?.end(sent.reply ?? "")) === true && isShown;
    if (!json && sent.reply !== undefined && !isThere) printer.answer(sent.reply);
    const left = run === null ? [] : await waitUntilClaimedSettled(open, run.rootId);
    if (left.length > 0) printNotice(open, leftForText(left));
    report(open, sent, runId);
  } catch (error) {
    accepted.reject(error);
    throw error;
  } finally {
    stopListening();
    approvals.close();
    shown?.close();
  }
}

/** Aborts the run and everything that it started. */
async function abort(open: OpenSkeinCalls, accepted: Promise<string>): Promise<void> {
  const runId = await accepted;
  await open.calls.call("runs.abort", { runId, ...open.user });
  const run = await getRun(open, runId);
  if (run !== null) await abortAll(open, run.rootId);
}

function report(cli: Invocation, sent: SentPayload, runId: string): void {
  const { terminal } = cli;
  printPayload(cli, sent, () => {
    if (sent.state === "ok" || sent.error === undefined) return;
    const { message, code } = sent.error;
    const text = `${escapeToLine(message)} [${escapeToLine(code)}] See ${commandLine(cli, "runs", "show", runId)}`;
    terminal.err(`${paint(terminal, "red", "error:", "err")} ${text}\n`);
  });
  if (sent.state !== "ok") throw new CommandFailed();
}
