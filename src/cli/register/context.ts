import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples, refHelp } from "./options.ts";

export function registerContext(program: Command, terminal: Terminal): void {
  program
    .command("context")
    .description("Print what a model would be sent from where the session stands.")
    .argument("<ref>", refHelp)
    .addHelpText("after", examples("skein context trip", "skein context ./trip.jsonl --json"))
    .action(async (name: string, _, command: Command) => {
      const { showContext } = await import("../commands/context.ts");
      await showContext(terminal, name, command.optsWithGlobals());
    });
}
