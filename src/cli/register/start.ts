import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { examples } from "./options.ts";

export function registerStart(program: Command, terminal: Terminal, version: string): void {
  program
    .command("start")
    .description("Open the gateway of a folder, print a link to it, and stay until told to stop.")
    .option("--host <address>", "where it listens (default: as configured, else 127.0.0.1)")
    .option(
      "--port <number>",
      "the port; 0: any that is free (default: as configured, else 18790)",
      portNumber,
    )
    .option("--expose", "let it listen where other machines reach it")
    .addHelpText(
      "after",
      examples(
        "skein start",
        "skein start --dir ./project/.skein --port 0",
        "skein start --host 0.0.0.0 --expose",
        "skein start --json",
      ),
    )
    .action(async (_, command: Command) => {
      const { processOutside } = await import("../gateway/stop-requests.ts");
      const outside = processOutside();
      const [{ startCommand }, { gatewayPieces }] = await Promise.all([
        import("../commands/start.ts"),
        import("../../app/gateway-pieces.ts"),
      ]);
      await startCommand(terminal, command.optsWithGlobals(), { version, pieces: gatewayPieces, outside });
    });
  program
    .command("reload")
    .description(
      "Let the running gateway apply its whole configuration. A changed file is applied by itself, but MCP servers and ACP agents with a new or changed command wait for this.",
    )
    .addHelpText("after", examples("skein reload", "skein reload --dir ./project/.skein --json"))
    .action(async (_, command: Command) => {
      const { reloadCommand } = await import("../commands/reload.ts");
      await reloadCommand(terminal, command.optsWithGlobals());
    });
}

function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError("It must be a whole number from 0 to 65535.");
  return Number(text);
}
