import type { Command, Option } from "commander";
import { CommanderError } from "commander";
import { createProgram } from "../../src/cli/main.ts";
import { processTerminal } from "../../src/cli/output/terminal.ts";

interface DescribedCommand {
  readonly path: readonly string[];
  readonly command: Command;
  /** What `--help` prints. */
  readonly help: string;
}

/** Returns the page that describes every command, from the definitions that `skein --help` prints. */
export async function writeCliReference(): Promise<string> {
  const commands = await describeCommands([]);
  return [
    "# Commands and options",
    "",
    "Every command of `skein`, generated from the definitions that `--help` prints. [The command line](cli.md) explains how to use them.",
    ...commands.flatMap(describe),
    "",
  ].join("\n");
}

/** Describes a command and its subcommands. Each one is loaded by a separate `Command` that is asked for its help. */
async function describeCommands(path: readonly string[]): Promise<DescribedCommand[]> {
  let help = "";
  const print = (text: string) => {
    help += text;
  };
  const program = createProgram({
    terminal: { ...processTerminal(), out: print, err: print },
    version: "",
    enter: () => undefined,
  });
  try {
    await program.parseAsync([...path, "--help"], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError) || error.exitCode !== 0) throw error;
  }
  const command = path.reduce<Command>((parent, name) => childOf(parent, name), program);
  const children = command.commands.filter((each) => each.name() !== "help");
  const below = await Promise.all(children.map((each) => describeCommands([...path, each.name()])));
  return [{ path, command, help }, ...below.flat()];
}

function childOf(parent: Command, name: string): Command {
  const child = parent.commands.find((each) => each.name() === name);
  if (child === undefined) throw new Error(`${parent.name()} has no command ${name}`);
  return child;
}

function describe({ path, command, help }: DescribedCommand): string[] {
  const isGroup = command.commands.length > 0;
  const usage = ["skein", ...path, ...(isGroup ? ["<command>"] : [command.usage()])].join(" ");
  const options = command.options.filter(({ hidden }) => !hidden);
  const [, examples = ""] = /\nExamples:\n([\s\S]*)$/.exec(help) ?? [];
  return [
    "",
    `## ${["skein", ...path].join(" ")}`,
    "",
    escapeTags(command.description()),
    "",
    "```sh",
    usage,
    "```",
    ...table(
      ["argument", "description"],
      command.registeredArguments.map((each) => [`\`${each.name()}\``, each.description ?? ""]),
    ),
    ...table([path.length === 0 ? "option of every command" : "option", "description"], options.map(rowOf)),
    ...(examples === "" ? [] : ["", "```sh", examples.replaceAll(/^ {2}\$ /gm, "").trimEnd(), "```"]),
  ];
}

function rowOf(option: Option): string[] {
  const values = option.argChoices === undefined ? "" : ` One of ${option.argChoices.map(code).join(", ")}.`;
  const { defaultValue } = option;
  const isShown = defaultValue !== undefined && !Array.isArray(defaultValue) && defaultValue !== false;
  return [
    code(option.flags),
    `${option.description}${values}${isShown ? ` Default: ${code(String(defaultValue))}.` : ""}`,
  ];
}

function code(text: string): string {
  return `\`${text}\``;
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => escapeTags(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return ["", line(titles), line(titles.map(() => "---")), ...rows.map(line)];
}

/** Angle brackets outside code would be read as HTML. */
function escapeTags(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") ? part : part.replaceAll("<", "&lt;")))
    .join("");
}
