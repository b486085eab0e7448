import type { Command } from "commander";
import { CommanderError } from "commander";
import type { ExitCode } from "./output/errors.ts";
import { reportFailure } from "./output/errors.ts";
import type { Terminal } from "./output/terminal.ts";
import { processTerminal } from "./output/terminal.ts";
import { createProgram } from "./program.ts";

export { exitOnSignals, type Terminal } from "./output/terminal.ts";

/**
 * Runs one command line (without `node` and the script) and returns the exit code. `overrides` replaces parts of the process's
 * own terminal.
 */
export async function runCli(
  args: readonly string[],
  version: string,
  overrides: Partial<Terminal> = {},
): Promise<ExitCode> {
  const terminal: Terminal = { ...processTerminal(), ...overrides };
  const json = args.includes("--json");
  let entered: Command | null = null;
  const enter = (command: Command) => {
    entered = command;
  };
  const program = createProgram({ terminal, version, enter }, json);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const failed = { ...terminal, command: [terminal.command, ...pathOf(entered)].join(" ") };
    if (!(error instanceof CommanderError)) return reportFailure(error, failed, json);
    if (error.exitCode === 0) return 0;
    const isHelp = error.code === "commander.help" && !json;
    return isHelp ? 2 : reportFailure(error, failed, json);
  }
}

/** The names that lead from the program to a command. */
function pathOf(command: Command | null): string[] {
  return command === null || command.parent === null ? [] : [...pathOf(command.parent), command.name()];
}
