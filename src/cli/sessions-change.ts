import type { Command } from "commander";
import { SkeinError } from "../core/errors.ts";
import { parseSessionId } from "../core/names.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { CommandContext } from "./command.ts";
import { examples, sessionHelp } from "./command.ts";
import { exactKey, resolveEntry, resolveRef } from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { withCalls } from "./connection/with-calls.ts";
import type { AnswerLine } from "./output/answer.ts";
import { answer } from "./output/answer.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import type { Terminal } from "./output/terminal.ts";
import { pathFrom } from "./output/terminal.ts";

export function registerSessionsNew(command: Command, { terminal }: CommandContext): void {
  command
    .argument("[name]", "a key, a short key, or a session id; left out: a new id")
    .option("--label <label>", "a label, unique for the agent")
    .option("--cwd <folder>", "the session's working directory (default: here)")
    .option("--id <sessionId>", "the session id, if it is not the name")
    .addHelpText(
      "after",
      examples(
        "skein sessions new",
        "skein sessions new porto --label sea",
        "skein sessions new agent:research:session:notes",
        "skein sessions new cron:weekly --cwd /",
      ),
    )
    .action((name?: string) => newCommand(terminal, name, command.optsWithGlobals()));
}

export function registerSessionsFork(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--at <entryId>", "up to this entry (its id, or a unique ending of it)")
    .option("--id <sessionId>", "the new session's id")
    .addHelpText("after", examples("skein sessions fork trip", "skein sessions fork trip --id trip-by-car"))
    .action((ref: string) => forkCommand(terminal, ref, command.optsWithGlobals()));
}

export function registerSessionsReset(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .addHelpText("after", examples("skein sessions reset main", "skein sessions reset trip --json"))
    .action((ref: string) => resetCommand(terminal, ref, command.optsWithGlobals()));
}

export function registerSessionsRename(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .argument("[label]", "the new label, unique for the agent")
    .option("--name <text>", "the name to show instead; empty removes it")
    .option("--clear", "remove the label")
    .addHelpText(
      "after",
      examples(
        "skein sessions rename trip spring",
        'skein sessions rename trip --name "Three days in Kyoto"',
        "skein sessions rename trip --clear",
      ),
    )
    .action((ref: string, label?: string) => renameCommand(terminal, ref, label, command.optsWithGlobals()));
}

export function registerSessionsArchive(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", sessionHelp)
    .option("--undo", "bring it back")
    .addHelpText("after", examples("skein sessions archive trip", "skein sessions archive trip --undo"))
    .action((ref: string) => archiveCommand(terminal, ref, command.optsWithGlobals()));
}

interface RenameOptions extends GlobalOptions {
  readonly name?: string;
  readonly clear?: boolean;
}

async function renameCommand(
  terminal: Terminal,
  ref: string,
  label: string | undefined,
  options: RenameOptions,
): Promise<void> {
  const { name, clear } = options;
  if ([label !== undefined, name !== undefined, clear === true].filter(Boolean).length !== 1) {
    throw new SkeinError("invalid_arguments", {
      problem: "Give a label, --name or --clear",
      advice: "Use exactly one of them",
    });
  }
  await withCalls(terminal, options, async (open) => {
    const key = exactKey(await resolveRef(open, ref));
    const called = name?.trim() ?? "";
    const wish = name === undefined ? { label: label ?? null } : { name: called === "" ? null : called };
    const done = await open.calls.call("sessions.rename", { key, ...wish, ...open.reader });
    const what =
      name === undefined
        ? label === undefined
          ? "has no label now"
          : `has the label ${label}`
        : called === ""
          ? "has no name now"
          : `is named ${name}`;
    answer(terminal, options, done, [`${displayKey(done.key, open.asker)} ${what}`]);
  });
}

async function archiveCommand(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { readonly undo?: boolean },
): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const key = exactKey(await resolveRef(open, name));
    const archived = options.undo !== true;
    const done = await open.calls.call("sessions.archive", { key, archived, ...open.reader });
    const shown = displayKey(done.key, open.asker);
    const lines: AnswerLine[] = archived
      ? [`${shown} is archived`, ["undo", open.nextCommand("sessions", "archive", name, "--undo")]]
      : [`${shown} is in lists again`];
    answer(terminal, options, done, lines);
  });
}

interface NewOptions extends GlobalOptions {
  readonly label?: string;
  readonly cwd?: string;
  readonly id?: string;
}

async function newCommand(terminal: Terminal, name: string | undefined, options: NewOptions): Promise<void> {
  const sessionId = options.id === undefined ? undefined : parseSessionId(options.id);
  await withCalls(
    terminal,
    options,
    async (open) => {
      const { calls, reader, asker } = open;
      const cwd = options.cwd === undefined ? undefined : pathFrom(terminal, options.cwd);
      const made = await calls.call("sessions.create", {
        ...present({ key: name, sessionId, label: options.label, cwd }),
        ...reader,
      });
      const lines = options.json === true ? [] : await linesFor(open, made);
      answer(terminal, options, made, [`made ${displayKey(made.key, asker)}`, ...lines]);
    },
    "create",
  );
}

async function linesFor(
  { calls, reader }: OpenCalls,
  { key, sessionId }: { readonly key: string; readonly sessionId: string },
): Promise<AnswerLine[]> {
  const { transcriptPath } = await calls.call("sessions.get", { key, ...reader });
  const file: AnswerLine[] = transcriptPath === undefined ? [] : [["file", transcriptPath]];
  return [["id", sessionId], ...file];
}

interface ForkOptions extends GlobalOptions {
  readonly at?: string;
  readonly id?: string;
}

async function forkCommand(terminal: Terminal, name: string, options: ForkOptions): Promise<void> {
  const sessionId = options.id === undefined ? undefined : parseSessionId(options.id);
  await withCalls(terminal, options, async (open) => {
    const { calls, reader, asker } = open;
    const from = await resolveRef(open, name);
    const key = exactKey(from);
    const entryId =
      options.at === undefined ? null : await resolveEntry(open, { key, ...open.reader }, options.at);
    const made = await calls.call("sessions.fork", {
      key,
      ...present({ entryId, sessionId }),
      ...reader,
    });
    const lines = options.json === true ? [] : await linesFor(open, made);
    const what = `made ${displayKey(made.key, asker)} from ${displayKey(from.key, asker)}`;
    answer(terminal, options, made, [what, ...lines]);
  });
}

async function resetCommand(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  await withCalls(terminal, options, async (open) => {
    const key = exactKey(await resolveRef(open, name));
    const done = await open.calls.call("sessions.reset", { key, ...open.reader });
    answer(terminal, options, done, [
      `${displayKey(done.key, open.asker)} starts over`,
      ["id", done.sessionId],
      ["before", done.previous.key],
    ]);
  });
}
