import type { Command } from "commander";
import type { Terminal } from "../output/terminal.ts";
import { allUsersOption, examples, refHelp, upTo, wholeNumber } from "./options.ts";

/** Commands that change nothing. */
export function registerReading(sessions: Command, terminal: Terminal): void {
  registerList(sessions, terminal);
  registerSearch(sessions, terminal);
  sessions
    .command("show")
    .description("Print the messages of the active branch, by default the newest 200.")
    .argument("<ref>", refHelp)
    .option("--limit <n>", "messages at the most, up to 1000 (default: 200)", upTo(1000))
    .option("--before <entryId>", "the page that ends before this entry (its id, or a unique ending of it)")
    .option("--after <entryId>", "the page that begins behind this entry")
    .addHelpText(
      "after",
      examples("skein sessions show trip", "skein sessions show ./trip.jsonl --limit 20 --json"),
    )
    .action(async (name: string, _, command: Command) => {
      const { showSession } = await import("../commands/sessions-show.ts");
      await showSession(terminal, name, command.optsWithGlobals());
    });
  sessions
    .command("tree")
    .description("Draw every branch, with labels, compactions and the leaf.")
    .argument("<ref>", refHelp)
    .option("--all", "bookkeeping entries too (labels, names, moves of the leaf)")
    .addHelpText("after", examples("skein sessions tree trip", "skein sessions tree ./trip.jsonl --json"))
    .action(async (name: string, _, command: Command) => {
      const { showTree } = await import("../commands/sessions-tree.ts");
      await showTree(terminal, name, command.optsWithGlobals());
    });
}

function registerList(sessions: Command, terminal: Terminal): void {
  sessions
    .command("ls")
    .description("List sessions, the last used first.")
    .option("--kinds <kinds>", "only these, with commas: main, group, cron, hook, node, other")
    .option("--label <label>", "only the one with this label")
    .option("--search <text>", "only those with this text in key, id, label or name")
    .option("--active <minutes>", "only those used in the last so many minutes", wholeNumber)
    .option("--archived", "the archived ones instead")
    .option("--trash", "what is in the trash instead")
    .option("--limit <n>", "sessions at the most, up to 1000 (default: 100)", upTo(1000))
    .option("--cursor <cursor>", "continue after the page that returned this cursor")
    .addOption(allUsersOption())
    .addHelpText(
      "after",
      examples(
        "skein sessions ls",
        "skein sessions ls --kinds main,group --active 60",
        "skein sessions ls --trash",
        "skein sessions ls --agent research --json",
      ),
    )
    .action(async (_, command: Command) => {
      const { listCommand } = await import("../commands/sessions-ls.ts");
      await listCommand(terminal, command.optsWithGlobals());
    });
}

function registerSearch(sessions: Command, terminal: Terminal): void {
  sessions
    .command("search")
    .description("Find words in what was said, tool results too; entries with all words come first.")
    .argument("<text>", "the words")
    .option("--session <ref>", "only in this session")
    .option("--role <role>", "only what this role said: user, assistant, toolResult")
    .option("--since <time>", "only from then on: a date, or a span back from now such as 90m, 24h, 7d")
    .option("--until <time>", "only up to then")
    .option("--limit <n>", "hits at the most, up to 50 (default: 10)", upTo(50))
    .addHelpText(
      "after",
      examples(
        "skein sessions search gardens",
        'skein sessions search "counter seats" --session trip --role assistant',
        "skein sessions search Kyoto --since 7d --json",
      ),
    )
    .action(async (text: string, _, command: Command) => {
      const { searchCommand } = await import("../commands/sessions-search.ts");
      await searchCommand(terminal, text, command.optsWithGlobals());
    });
}
