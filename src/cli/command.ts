import type { Command } from "commander";
import { Help, InvalidArgumentError, Option } from "commander";
import type { Invocation } from "./output/invocation.ts";
import type { Terminal } from "./output/terminal.ts";

/** The parts of the process that are passed to every command. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly version: string;
  /** Called with each command that the command line selects, one level at a time. */
  enter(command: Command): void;
}

/** Adds arguments, options, examples and the action to a command. */
type RegisterCommand = (command: Command, context: CommandContext) => void;

export interface LazyCommand {
  readonly name: string;
  /** The usage shown after the name in the parent's help. */
  readonly usage: string;
  readonly about: string;
  load(): Promise<RegisterCommand>;
}

/** Adds commands whose code is loaded when they run or show their own help. */
export function addLazyCommands(
  parent: Command,
  context: CommandContext,
  commands: readonly LazyCommand[],
): void {
  const unloaded = new Map<Command, LazyCommand>();
  const usages = new Map(commands.map(({ name, usage }) => [name, `${name} ${usage}`.trimEnd()]));
  const load = async (command: Command) => {
    const lazy = unloaded.get(command);
    if (lazy === undefined) return;
    unloaded.delete(command);
    const register = await lazy.load();
    register(command, context);
    command.hook("preSubcommand", (_, child) => context.enter(child));
  };
  for (const lazy of commands) unloaded.set(parent.command(lazy.name).description(lazy.about), lazy);
  parent
    .configureHelp({
      ...parent.configureHelp(),
      subcommandTerm: (command) => usages.get(command.name()) ?? Help.prototype.subcommandTerm(command),
    })
    .hook("preSubcommand", async (_, command) => {
      context.enter(command);
      await load(command);
    });
  // Commander's own help command would show a command whose options have not been loaded yet.
  parent
    .command("help [command]")
    .description("display help for command")
    .action(async (name?: string) => {
      const command = parent.commands.find((each) => each.name() === name);
      if (command !== undefined) await load(command);
      (command ?? parent).help({ error: name !== undefined && command === undefined });
    });
}

/**
 * Returns the handler for commander's `action`. `act` receives the terminal and the options, followed by the arguments.
 */
export function action<Options, Args extends readonly unknown[]>(
  { terminal }: CommandContext,
  act: (cli: Invocation<Options>, ...args: Args) => Promise<void>,
) {
  return async function (this: Command, ...given: unknown[]): Promise<void> {
    // Commander appends the command's options and the command itself.
    await act({ terminal, options: this.optsWithGlobals() }, ...(given.slice(0, -2) as unknown as Args));
  };
}

export const refHelp =
  "a session: its key, session ID, label or ID prefix; or a file (a path with / or .jsonl)";
export const sessionHelp = "a session: its key, session ID, label or ID prefix";
/** Help text for commands that create the session. */
export const newSessionHelp =
  "a session: its key (created if it does not exist), main, its session ID, label or a prefix of its ID";

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}\n`;
}

const largestNumber = 999_999;

export function wholeNumber(text: string): number {
  return upTo(largestNumber)(text);
}

/** Returns a parser for a whole number from 1 to `largest`. */
export function upTo(largest: number): (text: string) => number {
  return (text) => {
    const number = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : largest + 1;
    if (number <= largest) return number;
    throw new InvalidArgumentError(`Must be a whole number from 1 to ${largest}.`);
  };
}

export function allUsersOption(): Option {
  return new Option("--all-users", "include every user's rows; each row names its user");
}

export function yesOption(): Option {
  return new Option("--yes", "do not ask for confirmation");
}
