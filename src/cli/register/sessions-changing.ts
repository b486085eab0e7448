import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, sessionHelp } from "./options.ts";

/** Commands whose change can be taken back. */
export function registerChanging(sessions: Command, terminal: Terminal): void {
  registerNew(sessions, terminal);
  registerRename(sessions, terminal);
  registerCompact(sessions, terminal);
  sessions
    .command("fork")
    .description("Make a new session with the path to an entry, by default to where the session stands.")
    .argument("<ref>", sessionHelp)
    .option("--at <entryId>", "up to this entry (its id, or a unique ending of it)")
    .option("--id <sessionId>", "the new session's id")
    .addHelpText("after", examples("skein sessions fork trip", "skein sessions fork trip --id trip-by-car"))
    .action(async (name: string, _, command: Command) => {
      const { forkCommand } = await import("../commands/sessions-new.ts");
      await forkCommand(terminal, name, command.optsWithGlobals());
    });
  sessions
    .command("reset")
    .description(
      "Begin a new session under the same key; the old one stays, under agent:<id>:reset:<its id>.",
    )
    .argument("<ref>", sessionHelp)
    .addHelpText("after", examples("skein sessions reset main", "skein sessions reset trip --json"))
    .action(async (name: string, _, command: Command) => {
      const { resetCommand } = await import("../commands/sessions-new.ts");
      await resetCommand(terminal, name, command.optsWithGlobals());
    });
  sessions
    .command("archive")
    .description("Leave a session out of lists; any new input brings it back.")
    .argument("<ref>", sessionHelp)
    .option("--undo", "bring it back")
    .addHelpText("after", examples("skein sessions archive trip", "skein sessions archive trip --undo"))
    .action(async (name: string, _, command: Command) => {
      const { archiveCommand } = await import("../commands/sessions-change.ts");
      await archiveCommand(terminal, name, command.optsWithGlobals());
    });
}

function registerNew(sessions: Command, terminal: Terminal): void {
  sessions
    .command("new")
    .description("Make a session.")
    .argument("[name]", "a key, a short key, or a session id; left out: a new id")
    .option("--label <label>", "a label, unique for the agent")
    .option("--cwd <folder>", "where the session works (default: here)")
    .option("--id <sessionId>", "the session id, when it is not to be the name")
    .addHelpText(
      "after",
      examples(
        "skein sessions new",
        "skein sessions new porto --label sea",
        "skein sessions new agent:research:session:notes",
        "skein sessions new cron:weekly --cwd /",
      ),
    )
    .action(async (name: string | undefined, _, command: Command) => {
      const { newCommand } = await import("../commands/sessions-new.ts");
      await newCommand(terminal, name, command.optsWithGlobals());
    });
}

function registerRename(sessions: Command, terminal: Terminal): void {
  sessions
    .command("rename")
    .description("Give a session a label to find it by, or a name to show.")
    .argument("<ref>", sessionHelp)
    .argument("[label]", "the new label, unique for the agent")
    .option("--name <text>", "the name to show instead; empty takes it away")
    .option("--clear", "take the label away")
    .addHelpText(
      "after",
      examples(
        "skein sessions rename trip spring",
        'skein sessions rename trip --name "Three days in Kyoto"',
        "skein sessions rename trip --clear",
      ),
    )
    .action(async (name: string, label: string | undefined, _, command: Command) => {
      const { renameCommand } = await import("../commands/sessions-change.ts");
      await renameCommand(terminal, name, label, command.optsWithGlobals());
    });
}

function registerCompact(sessions: Command, terminal: Terminal): void {
  sessions
    .command("compact")
    .description(
      "Have the older part of a session summarised by its model, or let a summary of yours stand in for it. The log keeps everything.",
    )
    .argument("<ref>", sessionHelp)
    .option("--mind <text>", "instructions for the summary")
    .option("--summary <text>", "your own summary; @file reads it from a file")
    .option(
      "--keep-from <entryId>",
      "with your own summary: the first entry that is kept (its id, or a unique ending of it)",
    )
    .addHelpText(
      "after",
      examples('skein sessions compact trip --summary "Goal: three calm days." --keep-from 52e90dd7'),
    )
    .action(async (name: string, _, command: Command) => {
      const { compactCommand } = await import("../commands/sessions-compact.ts");
      await compactCommand(terminal, name, command.optsWithGlobals());
    });
}
