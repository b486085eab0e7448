import type { Command } from "commander";
import { CommandFailed } from "../output/errors.ts";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";

/** Commands that look after a folder. */
export function registerUpkeep(program: Command, terminal: Terminal): void {
  program
    .command("doctor")
    .description(
      "Look at files, configuration and maintenance, and start each ACP agent for a moment to see whether it answers; change nothing unless told to.",
    )
    .option("--fix", "mend what can be mended")
    .option("--all", "show every setting, those too that nobody has set")
    .option("--explain <ref>", "say what each rule of session.maintenance means for one session")
    .addHelpText(
      "after",
      examples("skein doctor", "skein doctor --fix", "skein doctor --all", "skein doctor --explain trip"),
    )
    .action(async (_, command: Command) => {
      const { doctorCommand } = await import("../commands/doctor.ts");
      if (!(await doctorCommand(terminal, command.optsWithGlobals()))) throw new CommandFailed();
    });
  program
    .command("backup")
    .description(
      "Copy sessions, queued work and the configuration, as they are at one moment, into a folder that is empty or not there. Left out: .env, tokens, working directories of agents.",
    )
    .argument("<folder>", "where to")
    .addHelpText("after", examples("skein backup ./backup", "skein backup ./backup --json"))
    .action(async (folder: string, _, command: Command) => {
      const { backupCommand } = await import("../commands/backup.ts");
      await backupCommand(terminal, folder, command.optsWithGlobals());
    });
  program
    .command("restore")
    .description("Make a new folder of a backup. --dir names it; it must be empty or not there.")
    .argument("<backup>", "the folder that `skein backup` made")
    .addHelpText(
      "after",
      examples("skein restore ./backup --dir ./restored", "skein restore ./backup --dir ./restored --json"),
    )
    .action(async (backup: string, _, command: Command) => {
      const { restoreCommand } = await import("../commands/backup.ts");
      await restoreCommand(terminal, backup, command.optsWithGlobals());
    });
}
