import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";

export function registerAcp(program: Command, terminal: Terminal, version: string): void {
  program
    .command("acp")
    .description(
      "Speak ACP over the standard streams: an agent and its sessions in an editor (Zed, JetBrains, Neovim).",
    )
    .addHelpText("after", examples("skein acp", "skein acp --agent main --user ann"))
    .action(async (_, command: Command) => {
      const { acpCommand } = await import("../commands/acp.ts");
      await acpCommand(terminal, version, command.optsWithGlobals());
    });
}
