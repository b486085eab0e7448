import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { parseSessionId } from "../core/names.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, sessionHelp } from "./command.ts";
import { exactKey, resolveEntry, resolveRef } from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { withCalls } from "./connection/with-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { printAnswer } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";
import { commandLine } from "./output/invocation.ts";
import { pathFrom } from "./output/terminal.ts";

export function registerSessionsNew(command: Command, context: CommandContext): void {
  command
    .argument("[name]", "a key, a short key or a session ID (default: a new ID)")
    .option("--label <label>", "a label that is unique within the agent")
    .option("--cwd <folder>", "the session's working directory (default: the current directory)")
    .option("--id <sessionId>", "the session ID, if it differs from the name")
    .addHelpText(
      "after",
      examples(
        "skein sessions new",
        "skein sessions new porto --label sea",
        "skein sessions new agent:research:session:notes",
        "skein sessions new cron:weekly --cwd /",
      ),
    )
    .action(action(context, createSession));
}

interface NewOptions {
  readonly label?: string;
  readonly cwd?: string;
  readonly id?: string;
}

async function createSession(cli: Invocation<NewOptions>, name?: string): Promise<void> {
  const { id, label, cwd } = cli.options;
  const params = present({
    key: name,
    sessionId: id === undefined ? null : parseSessionId(id),
    label,
    cwd: cwd === undefined ? null : pathFrom(cli.terminal, cwd),
  });
  await withCalls(
    cli,
    async (open) => {
      const made = await open.calls.call("sessions.create", { ...params, ...open.reader });
      await printCreated(open, made, `created ${displayKey(made.key, open.asker)}`);
    },
    "create",
  );
}

interface CreatedSession {
  readonly key: string;
  readonly sessionId: string;
}

async function printCreated(open: OpenCalls, made: CreatedSession, what: string): Promise<void> {
  const lines: AnswerLine[] = [what, ["id", made.sessionId]];
  if (open.options.json !== true) {
    const { transcriptPath } = await open.calls.call("sessions.get", { key: made.key, ...open.reader });
    lines.push(["file", transcriptPath]);
  }
  printAnswer(open, made, lines);
}

export function registerSessionsFork(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--at <entryId>", "fork from this entry (its ID, or the last characters if they are unique)")
    .option("--id <sessionId>", "the new session's ID")
    .addHelpText("after", examples("skein sessions fork trip", "skein sessions fork trip --id trip-by-car"))
    .action(action(context, forkSession));
}

interface ForkOptions {
  readonly at?: string;
  readonly id?: string;
}

async function forkSession(cli: Invocation<ForkOptions>, name: string): Promise<void> {
  const { at, id } = cli.options;
  const sessionId = id === undefined ? null : parseSessionId(id);
  await withCalls(cli, async (open) => {
    const { calls, reader, asker } = open;
    const from = await resolveRef(open, name);
    const key = exactKey(from);
    const entryId = at === undefined ? null : await resolveEntry(open, { key, ...reader }, at);
    const made = await calls.call("sessions.fork", { key, ...present({ entryId, sessionId }), ...reader });
    await printCreated(
      open,
      made,
      `created ${displayKey(made.key, asker)} from ${displayKey(from.key, asker)}`,
    );
  });
}

export function registerSessionsReset(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .addHelpText("after", examples("skein sessions reset main", "skein sessions reset trip --json"))
    .action(action(context, resetSession));
}

async function resetSession(cli: Invocation, name: string): Promise<void> {
  await withCalls(cli, async (open) => {
    const key = exactKey(await resolveRef(open, name));
    const done = await open.calls.call("sessions.reset", { key, ...open.reader });
    printAnswer(open, done, [
      `${displayKey(done.key, open.asker)} has been reset`,
      ["id", done.sessionId],
      ["before", done.previous.key],
    ]);
  });
}

export function registerSessionsRename(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .argument("[label]", "the new label, which must be unique within the agent")
    .option("--name <text>", "the display name; an empty name removes it")
    .option("--clear", "remove the label")
    .addHelpText(
      "after",
      examples(
        "skein sessions rename trip spring",
        'skein sessions rename trip --name "Three days in Kyoto"',
        "skein sessions rename trip --clear",
      ),
    )
    .action(action(context, renameSession));
}

interface RenameOptions {
  readonly name?: string;
  readonly clear?: boolean;
}

async function renameSession(cli: Invocation<RenameOptions>, ref: string, label?: string): Promise<void> {
  const { clear } = cli.options;
  const name = cli.options.name?.trim();
  if ([label !== undefined, name !== undefined, clear === true].filter(Boolean).length !== 1) {
    throw new SkeinError("invalid_arguments", {
      problem: "Specify a label, --name or --clear",
      advice: "Use exactly one of them",
    });
  }
  const change = name === undefined ? { label: label ?? null } : { name: name === "" ? null : name };
  const labelText = label === undefined ? "no longer has a label" : `now has the label ${label}`;
  const nameText = name === "" ? "no longer has a name" : `is now named ${cli.options.name}`;
  await withCalls(cli, async (open) => {
    const key = exactKey(await resolveRef(open, ref));
    const done = await open.calls.call("sessions.rename", { key, ...change, ...open.reader });
    const what = name === undefined ? labelText : nameText;
    printAnswer(open, done, [`${displayKey(done.key, open.asker)} ${what}`]);
  });
}

export function registerSessionsArchive(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--undo", "unarchive the session")
    .addHelpText("after", examples("skein sessions archive trip", "skein sessions archive trip --undo"))
    .action(action(context, archiveSession));
}

async function archiveSession(cli: Invocation<{ readonly undo?: boolean }>, name: string): Promise<void> {
  const archived = cli.options.undo !== true;
  await withCalls(cli, async (open) => {
    const key = exactKey(await resolveRef(open, name));
    const done = await open.calls.call("sessions.archive", { key, archived, ...open.reader });
    const shown = displayKey(done.key, open.asker);
    const undo = commandLine(open, "sessions", "archive", name, "--undo");
    printAnswer(
      open,
      done,
      archived ? [`${shown} has been archived`, ["undo", undo]] : [`${shown} is no longer archived`],
    );
  });
}
