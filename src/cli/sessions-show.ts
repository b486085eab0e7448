import type { Command } from "commander";
import type { Diagnostic } from "../core/diagnostics.ts";
import { present } from "../core/present.ts";
import { displayKey } from "../core/references.ts";
import type { HistoryPayload } from "../protocol/chat.ts";
import type { HistoryRange } from "../sessions/history.ts";
import { historyOf } from "../sessions/history.ts";
import { treeView } from "../sessions/tree-view.ts";
import { readSessionFile } from "../store/files/lone-file.ts";
import type { CommandContext } from "./command.ts";
import { action, examples, refHelp, upTo } from "./command.ts";
import {
  fetchTree,
  isFileName,
  matchEntryId,
  refuseForFile,
  resolveEntry,
  resolveRef,
} from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { withCalls } from "./connection/with-calls.ts";
import { printFindings, printPayload } from "./output/answer.ts";
import type { Invocation } from "./output/invocation.ts";
import { printMessage, printTree } from "./output/print-session.ts";
import { oneLine, paint, pathFrom, printNote, wholeLine } from "./output/terminal.ts";

export function registerSessionsShow(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--limit <n>", "maximum number of messages, up to 1000 (default: 200)", upTo(1000))
    .option(
      "--before <entryId>",
      "show the page before this entry (its ID, or the last characters if they are unique)",
    )
    .option("--after <entryId>", "show the page after this entry")
    .option("--around <entryId>", "show the page around this entry, on its own branch")
    .option("--leaf <entryId>", "show the branch that ends at this entry, without moving the session's leaf")
    .addHelpText(
      "after",
      examples(
        "skein sessions show trip",
        "skein sessions show trip --leaf 3d5aea03",
        "skein sessions show ./trip.jsonl --limit 20 --json",
      ),
    )
    .action(action(context, showSession));
}

export function registerSessionsTree(command: Command, context: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--all", "include bookkeeping entries (labels, names, leaf moves)")
    .addHelpText("after", examples("skein sessions tree trip", "skein sessions tree ./trip.jsonl --json"))
    .action(action(context, showTree));
}

interface ShowOptions {
  readonly limit?: number;
  readonly before?: string;
  readonly after?: string;
  readonly around?: string;
  readonly leaf?: string;
}

/** The maximum length of a session's name. The key that follows it is never truncated. */
const longestName = 80;

interface Shown {
  readonly history: HistoryPayload;
  readonly title: string;
  readonly findings: readonly Diagnostic[];
}

async function showSession(cli: Invocation<ShowOptions>, name: string): Promise<void> {
  const { terminal } = cli;
  const { history, title, findings } = isFileName(name)
    ? await pageOfFile(cli, name)
    : await withCalls(cli, (open) => pageOfSession(open, name, cli.options));
  const { messages, nextBefore, nextAfter, pending } = history;
  printPayload(cli, history, () => {
    terminal.out(`${paint(terminal, "bold", wholeLine(title))}\n`);
    if (nextBefore !== undefined) printNote(terminal, `earlier: --before ${nextBefore}`);
    for (const message of messages) printMessage(terminal, message);
    if (nextAfter !== undefined) {
      terminal.out("\n");
      printNote(terminal, `later: --after ${nextAfter}`);
    }
    for (const waiting of pending)
      printMessage(terminal, { ...waiting, id: `waiting as run ${waiting.runId}` });
    if (messages.length === 0) printNote(terminal, "no messages on this branch");
    printFindings(terminal, findings);
  });
}

async function pageOfFile({ terminal, options }: Invocation<ShowOptions>, name: string): Promise<Shown> {
  refuseForFile({ "--around": options.around, "--leaf": options.leaf });
  const tree = await readSessionFile(pathFrom(terminal, name));
  const ids = Array.from(tree.entries(), ({ id }) => id);
  const history = historyOf(tree, await rangeOf(options, async (text) => matchEntryId(ids, text) ?? text));
  const title =
    tree.name === null ? history.sessionId : `${oneLine(tree.name, longestName)} (${history.sessionId})`;
  return { history, title, findings: tree.diagnostics };
}

async function pageOfSession(open: OpenCalls, name: string, options: ShowOptions): Promise<Shown> {
  const { calls, reader } = open;
  const { key } = await resolveRef(open, name);
  const entryId = (text: string) => resolveEntry(open, { key, ...reader }, text);
  const range = await rangeOf(options, entryId);
  const branch = present({
    around: options.around === undefined ? null : await entryId(options.around),
    leafId: options.leaf === undefined ? null : await entryId(options.leaf),
  });
  const history = await calls.call("chat.history", { sessionKey: key, ...range, ...branch, ...reader });
  const title = open.options.json === true ? key : await titleOf(open, key);
  return { history, title, findings: [] };
}

async function titleOf({ calls, reader, asker }: OpenCalls, key: string): Promise<string> {
  const { displayName, label } = await calls.call("sessions.get", { key, ...reader });
  const called = displayName ?? label;
  const shown = displayKey(key, asker);
  return called === undefined ? shown : `${oneLine(called, longestName)} (${shown})`;
}

async function rangeOf(
  { limit, before, after }: ShowOptions,
  entryId: (text: string) => Promise<string>,
): Promise<HistoryRange> {
  return present({
    limit,
    before: before === undefined ? null : await entryId(before),
    after: after === undefined ? null : await entryId(after),
  });
}

async function showTree(cli: Invocation<{ readonly all?: boolean }>, name: string): Promise<void> {
  const { terminal, options } = cli;
  const view = isFileName(name)
    ? treeView(await readSessionFile(pathFrom(terminal, name)))
    : await withCalls(cli, async (open) => {
        const { key } = await resolveRef(open, name);
        return fetchTree(open, { key, ...open.reader });
      });
  printPayload(cli, view, () => printTree(terminal, view, { all: options.all, option: "--all" }));
}
