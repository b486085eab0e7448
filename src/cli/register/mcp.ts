import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";

export function registerMcp(program: Command, terminal: Terminal, version: string): void {
  program
    .command("mcp")
    .description(
      "Speak MCP over the standard streams: the session tools, and sessions as resources, for another program's agent.",
    )
    .addHelpText("after", examples("skein mcp", "skein mcp --agent main --user ann"))
    .action(async (_, command: Command) => {
      const { mcpCommand } = await import("../commands/mcp.ts");
      await mcpCommand(terminal, version, command.optsWithGlobals());
    });
}
