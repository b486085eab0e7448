import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";

/** Commands that look after a folder. */
export function registerUpkeep(program: Command, terminal: Terminal): void {
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
