import type { Command } from "commander";
import { CommanderError } from "commander";
import type { ExitCode } from "./output/errors.ts";
import { reportFailure } from "./output/errors.ts";
import type { Terminal } from "./output/terminal.ts";
import { processTerminal } from "./output/terminal.ts";
import { createProgram } from "./program.ts";

export { exitOnSignals } from "./output/terminal.ts";

/**
 * Runs one command line (without `node` and the script) and says how the process should exit. `surroundings` is what is
 * other than in this process's own terminal.
 */
export async function runCli(
  args: readonly string[],
  version: string,
  surroundings: Partial<Terminal> = {},
): Promise<ExitCode> {
  const terminal: Terminal = { ...processTerminal(), ...surroundings };
  const json = args.includes("--json");
  const program = createProgram(terminal, version);
  let typed = program;
  program.hook("preAction", (_, command) => {
    typed = command;
  });
  for (const command of withChildren(program)) {
    const refuse = (error: CommanderError) => {
      typed = command;
      throw error;
    };
    command.exitOverride(refuse).configureOutput({
      writeOut: terminal.out,
      writeErr: json ? () => undefined : terminal.err,
      // Told by reportFailure, in our own words.
      outputError: () => undefined,
    });
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const told = { ...terminal, command: [terminal.command, ...pathOf(typed)].join(" ") };
    if (!(error instanceof CommanderError)) return reportFailure(error, told, json);
    if (error.exitCode === 0) return 0;
    const helpShown = error.code === "commander.help" && !json;
    return helpShown ? 2 : reportFailure(error, told, json);
  }
}

/** The words of a command below the program. */
function pathOf(command: Command): string[] {
  return command.parent === null ? [] : [...pathOf(command.parent), command.name()];
}

function withChildren(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withChildren)];
}
