import type { Command } from "commander";
import { Option } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, sessionHelp } from "./options.ts";

export function registerAccess(program: Command, terminal: Terminal): void {
  program
    .command("access")
    .description("Tell whether a session may see another or send to it, and by which rule.")
    .argument("<asker>", sessionHelp)
    .argument("<target>", "what it would write to name the other, also one that is not there")
    .addOption(
      new Option("--action <action>", "only for this (default: for each)").choices([
        "list",
        "history",
        "send",
        "status",
      ]),
    )
    .addHelpText(
      "after",
      examples(
        "skein access trip cron:daily",
        "skein access trip subagent:food --action send",
        "skein access holiday agent:research:main --action history --json",
      ),
    )
    .action(async (asker: string, target: string, _, command: Command) => {
      const { accessCommand } = await import("../commands/access.ts");
      await accessCommand(terminal, asker, target, command.optsWithGlobals());
    });
}
