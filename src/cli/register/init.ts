import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, yesOption } from "./options.ts";

export function registerInit(program: Command, terminal: Terminal): void {
  program
    .command("init")
    .description("Write a first skein.yaml, here or into --dir, for the keys and the Ollama that are found.")
    .option("--force", "replace the one that is there; it is kept under another name")
    .addOption(yesOption())
    .addHelpText(
      "after",
      examples("skein init", "skein init --dir ./project", "skein init --force --yes", "skein init --json"),
    )
    .action(async (_, command: Command) => {
      const { initCommand } = await import("../commands/init.ts");
      await initCommand(terminal, command.optsWithGlobals());
    });
}
