import { Command, InvalidArgumentError, Option } from "commander";
import type { Terminal } from "./output/terminal.ts";

const examples = (...lines: readonly string[]) =>
  `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}\n`;

/** Every command, its options and its help. What a command does is loaded when it runs. */
export function createProgram(terminal: Terminal, version: string): Command {
  const program = new Command("skein")
    .description("Durable, branching sessions for AI agents.")
    .version(version)
    .addHelpText(
      "after",
      examples(
        "skein sessions tree ./trip.jsonl",
        "skein sessions show ./trip.jsonl --limit 5",
        "skein context ./trip.jsonl --json",
      ),
    );
  const sessions = program
    .command("sessions")
    .description("Look at sessions, and repair them.")
    .addHelpText("after", examples("skein sessions show ./trip.jsonl", "skein sessions tree ./trip.jsonl"));
  sessions
    .command("show")
    .description("Print the messages of the active branch, by default the newest 200.")
    .argument("<file>", "a session file")
    .option("--limit <n>", "messages at the most (default: 200)", wholeNumber)
    .option("--before <entryId>", "the page that ends before this entry (its id, or a unique ending of it)")
    .option("--after <entryId>", "the page that begins behind this entry")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples("skein sessions show ./trip.jsonl", "skein sessions show ./trip.jsonl --limit 20 --json"),
    )
    .action(async (file, options) => {
      const { showSession } = await import("./commands/sessions-show.ts");
      await showSession(terminal, file, options);
    });
  sessions
    .command("tree")
    .description("Draw every branch, with labels, compactions and the leaf.")
    .argument("<file>", "a session file")
    .option("--all", "bookkeeping entries too (labels, names, moves of the leaf)")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples("skein sessions tree ./trip.jsonl", "skein sessions tree ./trip.jsonl --json"),
    )
    .action(async (file, options) => {
      const { showTree } = await import("./commands/sessions-tree.ts");
      await showTree(terminal, file, options);
    });
  sessions
    .command("repair")
    .description("Write a damaged session file anew; the original is kept beside it.")
    .argument("<file>", "a session file")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples("skein sessions repair ./trip.jsonl", "skein sessions repair ./trip.jsonl --json"),
    )
    .action(async (file, options) => {
      const { repairSession } = await import("./commands/sessions-repair.ts");
      await repairSession(terminal, file, options);
    });
  program
    .command("context")
    .description("Print what a model would be sent from where the session stands.")
    .argument("<file>", "a session file")
    .addOption(jsonOption())
    .addHelpText("after", examples("skein context ./trip.jsonl", "skein context ./trip.jsonl --json"))
    .action(async (file, options) => {
      const { showContext } = await import("./commands/context.ts");
      await showContext(terminal, file, options);
    });
  return program;
}

function jsonOption(): Option {
  return new Option("--json", "print JSON and nothing else");
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text))
    throw new InvalidArgumentError("It must be a whole number from 1 to 999999.");
  return Number(text);
}
