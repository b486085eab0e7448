import { text as readText } from "node:stream/consumers";
import type { Command } from "commander";
import { Option } from "commander";
import { createIdSource } from "../core/ids.ts";
import { present } from "../core/present.ts";
import { escapeToLine } from "../core/text.ts";
import type { Params } from "../protocol/methods/method-table.ts";
import type { AcceptedPayload, RunRowPayload, SentPayload } from "../protocol/runs.ts";
import type { QueueMode } from "../runs/run.ts";
import type { CommandContext } from "./command.ts";
import { examples, newSessionHelp, thinkingLevels, wholeNumber } from "./command.ts";
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
import { tell } from "./connection/with-folder.ts";
import type { OpenSkeinCalls } from "./connection/with-skein-calls.ts";
import { withSkeinCalls } from "./connection/with-skein-calls.ts";
import { answer } from "./output/answer.ts";
import { CommandFailed } from "./output/errors.ts";
import { describeApp } from "./output/format.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { paint, printJson } from "./output/terminal.ts";
import { TurnPrinter } from "./output/turn-printer.ts";

export function registerSend(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", newSessionHelp)
    .argument("<text...>", "the message; - reads it from standard input")
    .option("--model <provider/model>", "answer with this model")
    .addOption(new Option("--thinking <level>", "how much the model thinks").choices(thinkingLevels))
    .option("--system <text>", "the system prompt of this turn, instead of the agent's")
    .addOption(
      new Option("--queue <mode>", "what happens to it while a turn runs (default: as configured)").choices([
        "steer",
        "followup",
        "interrupt",
      ]),
    )
    .option("--key <idempotencyKey>", "sending again with the same key returns the same run")
    .option("--timeout <seconds>", "the longest the run may take", wholeNumber)
    .option(
      "--image <file>",
      "attach an image; can be repeated",
      (file: string, files: readonly string[] = []) => [...files, file],
    )
    .option("--no-wait", "exit once the message is accepted; skein start runs it")
    .addHelpText(
      "after",
      examples(
        'skein send main "plan three days in Kyoto"',
        "skein send agent:main:session:porto repeat good morning --json",
        "skein send trip describe the gardens --key gardens-3 --timeout 600",
        "skein send trip repeat hello --queue followup --no-wait",
      ),
    )
    .action((ref: string, words: string[]) => sendCommand(terminal, ref, words, command.optsWithGlobals()));
}

interface SendCommandOptions extends GlobalOptions {
  readonly model?: string;
  readonly system?: string;
  readonly thinking?: NonNullable<Said["thinking"]>;
  readonly queue?: QueueMode;
  readonly key?: string;
  readonly timeout?: number;
  readonly image?: readonly string[];
  /** `false`: `--no-wait`. */
  readonly wait?: boolean;
}

type Said = Params<"sessions.send">;

async function sendCommand(
  terminal: Terminal,
  ref: string,
  words: readonly string[],
  options: SendCommandOptions,
): Promise<void> {
  const waits = options.wait !== false;
  const text = await textOf(terminal, words);
  const how = await sendOptions(terminal, options);
  await withSkeinCalls(terminal, options, { workers: waits && "own", ref }, async (open) => {
    const to = await resolveOrNew(open, ref);
    const named = await readMentionedImages(terminal, options, open, to, text);
    const attachments = [...(how.attachments ?? []), ...named];
    const said = { ...to, message: text, ...how, ...(attachments.length === 0 ? {} : { attachments }) };
    if (waits) return follow(terminal, open, said, options);
    const { runId, sessionKey } = await open.calls.call("sessions.send", said);
    const run = await getRun(open, runId);
    if (run?.waitsForApp !== undefined) return leaveToApp(terminal, open, run, options);
    const payload: AcceptedPayload = { runId, status: "accepted", sessionKey };
    const { nextCommand, store } = open;
    const left = `it waits for ${nextCommand("start")}, or for the next message to this session`;
    answer(terminal, options, payload, [
      `accepted; ${store === null ? "the gateway answers it" : left}`,
      ["run", runId],
      ["see", nextCommand("runs", "show", runId)],
    ]);
  });
}

/** The session belongs to an app whose process may not be running, so the command does not wait. */
function leaveToApp(
  terminal: Terminal,
  { nextCommand }: OpenSkeinCalls,
  run: RunRowPayload,
  options: GlobalOptions,
): void {
  const { runId, sessionKey, waitsForApp } = run;
  const payload: AcceptedPayload = { runId, status: "accepted", sessionKey, ...present({ waitsForApp }) };
  answer(terminal, options, payload, [
    `accepted; it waits for ${describeApp(run)}, which defines the agent ${run.agentId}`,
    ["run", runId],
    ["see", nextCommand("runs", "show", runId)],
    ["release", nextCommand("runs", "release", runId)],
  ]);
}

async function textOf(terminal: Terminal, words: readonly string[]): Promise<string> {
  const text =
    words.length === 1 && words[0] === "-" ? await readText(terminal.input().stream) : words.join(" ");
  return text.replace(/\n$/, "");
}

async function sendOptions(
  terminal: Terminal,
  options: SendCommandOptions,
): Promise<Omit<Said, "key" | "message">> {
  const { model, thinking, system, queue, key = createIdSource()(), timeout, image = [] } = options;
  if (model !== undefined) {
    const { parseModel } = await import("../transcript/parse-model.ts");
    parseModel(model);
  }
  const attachments = await readImages(terminal, image);
  return {
    idempotencyKey: key,
    ...present({ model, thinking, system, queueMode: queue, runTimeoutSeconds: timeout }),
    ...(attachments.length === 0 ? {} : { attachments }),
  };
}

async function follow(
  terminal: Terminal,
  open: OpenSkeinCalls,
  said: Said,
  options: GlobalOptions,
): Promise<void> {
  const json = options.json === true;
  const isShown = !json && terminal.isWatched;
  const notes = !json && (terminal.isWatched || terminal.redraws) ? "err" : null;
  const printer = new TurnPrinter(terminal, { notes, text: isShown, thinking: false });
  const shown = isShown || notes !== null ? new RunPrinter(printer, open, said) : null;
  const accepted = Promise.withResolvers<string>();
  accepted.promise.catch(() => undefined);
  // The next Ctrl-C ends the process; open runs continue in the next one.
  const stopListening = terminal.onInterrupt(() => {
    stopListening();
    printer.note("aborting; Ctrl-C again quits");
    void abort(open, accepted.promise).catch((error: unknown) => printer.note(String(error), "✗"));
  });
  const approvals = await announceApprovals(terminal, open, options);
  try {
    await shown?.ready;
    const { runId } = await open.calls.call("sessions.send", said);
    accepted.resolve(runId);
    const run = await getRun(open, runId);
    if (run?.waitsForApp !== undefined) return leaveToApp(terminal, open, run, options);
    shown?.begin(runId, run?.mergedInto);
    const sent = await waitUntilEnded(open, runId);
    const isThere = (await shown?.end(sent.reply ?? "")) === true && isShown;
    if (!json && sent.reply !== undefined && !isThere) printer.answer(sent.reply);
    const left = run === null ? [] : await waitUntilClaimedSettled(open, run.rootId);
    if (left.length > 0) tell(terminal, options, leftForText(left));
    report(terminal, sent, json, open.nextCommand("runs", "show", runId));
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
  const { userId } = open.reader;
  await open.calls.call("runs.abort", { runId, ...present({ userId }) });
  const run = await getRun(open, runId);
  if (run !== null) await abortAll(open, run.rootId);
}

function report(terminal: Terminal, sent: SentPayload, json: boolean, toSee: string): void {
  if (json) printJson(terminal, sent);
  const { error } = sent;
  if (sent.state === "ok") return;
  if (!json && error !== undefined) {
    const text = `${escapeToLine(error.message)} [${escapeToLine(error.code)}] See ${toSee}`;
    terminal.err(`${paint(terminal, "red", "error:", "err")} ${text}\n`);
  }
  throw new CommandFailed();
}
