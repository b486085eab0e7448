import type { Command } from "commander";
import { CommandFailed } from "../output/failure.ts";
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
    .addHelpText(
      "after",
      examples("skein doctor", "skein doctor --fix", "skein doctor --all", "skein doctor --json"),
    )
    .action(async (_, command: Command) => {
      const { doctorCommand } = await import("../commands/doctor.ts");
      if (!(await doctorCommand(terminal, command.optsWithGlobals()))) throw new CommandFailed();
    });
  program
    .command("backup")
    .description("Copy everything, as it is at one moment, into a folder that is empty or not there.")
    .argument("<folder>", "where to")
    .addHelpText("after", examples("skein backup ./backup", "skein backup ./backup --json"))
    .action(async (folder: string, _, command: Command) => {
      const { backupCommand } = await import("../commands/backup.ts");
      await backupCommand(terminal, folder, command.optsWithGlobals());
    });
}
