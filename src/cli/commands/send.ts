import { text as readText } from "node:stream/consumers";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import { escapeToLine } from "../../core/text.ts";
import type { AcceptedPayload } from "../../protocol/runs.ts";
import type { QueueMode, Run } from "../../runs/contract.ts";
import { RunError } from "../../sessions/skein/run-error.ts";
import { sentPayload } from "../../sessions/skein/run-views.ts";
import type { SendOptions } from "../../sessions/skein/session-handle.ts";
import type { Skein } from "../../sessions/skein/skein.ts";
import type { Turn } from "../../sessions/skein/turn-handle.ts";
import { readImages } from "../folder/read-images.ts";
import { leftTo, settledHere } from "../folder/settled-here.ts";
import { tell } from "../folder/with-folder.ts";
import type { OpenSkein } from "../folder/with-skein.ts";
import { contextFor, withSkein } from "../folder/with-skein.ts";
import { answer } from "../output/answer.ts";
import { CommandFailed } from "../output/failure.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { paint, printJson } from "../output/terminal.ts";
import { TurnPrinter } from "../output/turn-printer.ts";

export interface SendCommandOptions extends GlobalOptions {
  readonly model?: string;
  readonly thinking?: string;
  readonly queue?: QueueMode;
  readonly key?: string;
  readonly timeout?: number;
  readonly image?: readonly string[];
  /** `false`: `--no-wait`. */
  readonly wait?: boolean;
}

/** Says something to a session, and stays until everything that it set off has ended. */
export async function sendCommand(
  terminal: Terminal,
  ref: string,
  words: readonly string[],
  options: SendCommandOptions,
): Promise<void> {
  const workers = options.wait !== false;
  const text = await textOf(terminal, words);
  const how = await sendOptions(terminal, options);
  await withSkein(terminal, options, { workers, ref }, async (open) => {
    const session = open.skein.session(await contextFor(open, ref));
    if (workers) return follow(terminal, open, session.send(text, how), options);
    const run = await session.accept(text, how);
    const payload: AcceptedPayload = { runId: run.runId, status: "accepted", sessionKey: run.session.key };
    answer(terminal, options, payload, [
      "accepted; the next process that runs this folder answers it",
      ["run", run.runId],
      ["see", open.toType("runs", "show", run.runId)],
    ]);
  });
}

async function textOf(terminal: Terminal, words: readonly string[]): Promise<string> {
  const text =
    words.length === 1 && words[0] === "-" ? await readText(terminal.input().stream) : words.join(" ");
  return text.replace(/\n$/, "");
}

async function sendOptions(terminal: Terminal, options: SendCommandOptions): Promise<SendOptions> {
  const { model, thinking, queue, key, timeout, image = [] } = options;
  if (model !== undefined) {
    const { parseModel } = await import("../../transcript/parse-model.ts");
    parseModel(model);
  }
  const images = await readImages(terminal, image);
  return {
    ...present({ model, thinking, queueMode: queue, idempotencyKey: key, runTimeoutSeconds: timeout }),
    ...(images.length === 0 ? {} : { images }),
    origin: "cli",
  };
}

async function follow(
  terminal: Terminal,
  open: OpenSkein,
  turn: Turn,
  options: GlobalOptions,
): Promise<void> {
  const { skein, toType } = open;
  const json = options.json === true;
  const isShown = !json && terminal.isWatched;
  const notes = !json && (terminal.isWatched || terminal.redraws) ? "err" : null;
  const printer = new TurnPrinter(terminal, { notes, text: isShown, thinking: false });
  // Once: the next Ctrl-C ends the process, and what is left goes on in the next one.
  const stopListening = terminal.onInterrupt(() => {
    stopListening();
    printer.note("aborting; Ctrl-C again leaves");
    void abortAll(skein, turn).catch((error: unknown) => printer.note(String(error), "✗"));
  });
  try {
    let hasText = false;
    for await (const event of turn) {
      hasText ||= event.type === "text";
      printer.show(event);
    }
    printer.endLine();
    const run = await endOf(skein, turn);
    if (!json && run.outcome?.reply !== undefined && !(isShown && hasText)) printer.answer(run.outcome.reply);
    const left = await settledHere(open, run.root.rootId);
    if (left.length > 0) tell(terminal, options, leftTo(left));
    report(terminal, run, json, toType("runs", "show", run.runId));
  } finally {
    stopListening();
  }
}

/** The run and everything that it set off. */
async function abortAll(skein: Skein, turn: Turn): Promise<void> {
  await turn.abort();
  const run = await skein.run(turn.runId);
  const states = ["queued", "running", "waiting", "sleeping"] as const;
  const left = run === null ? [] : await skein.runs({ rootId: run.root.rootId, states });
  await Promise.all(left.map(({ runId }) => skein.abort(runId)));
}

/** The run as it ended; what was refused before there was one is thrown. */
async function endOf(skein: Skein, turn: Turn): Promise<Run> {
  await turn.result.catch((error: unknown) => {
    if (!(error instanceof RunError)) throw error;
  });
  const run = await skein.run(turn.runId);
  if (run !== null) return run;
  throw new SkeinError("not_found", {
    what: "Run",
    name: turn.runId,
    advice: "Its session was deleted meanwhile",
  });
}

function report(terminal: Terminal, run: Run, json: boolean, toSee: string): void {
  const payload = sentPayload(run);
  if (json) printJson(terminal, payload);
  const { error } = payload;
  if (payload.state === "ok") return;
  if (!json && error !== undefined) {
    const text = `${escapeToLine(error.message)} [${escapeToLine(error.code)}] See ${toSee}`;
    terminal.err(`${paint(terminal, "red", "error:", "err")} ${text}\n`);
  }
  throw new CommandFailed();
}
