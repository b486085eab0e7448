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
import { examples, refHelp, upTo } from "./command.ts";
import {
  fetchTree,
  isFileName,
  matchEntryId,
  resolveEntry,
  resolveRef,
} from "./connection/resolve-session.ts";
import type { OpenCalls } from "./connection/with-calls.ts";
import { withCalls } from "./connection/with-calls.ts";
import { printFindings } from "./output/answer.ts";
import type { GlobalOptions } from "./output/global-options.ts";
import { printMessage, printTree } from "./output/print-session.ts";
import type { Terminal } from "./output/terminal.ts";
import { oneLine, paint, pathFrom, printJson, wholeLine } from "./output/terminal.ts";

export function registerSessionsShow(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--limit <n>", "at most this many messages, up to 1000 (default: 200)", upTo(1000))
    .option("--before <entryId>", "the page that ends before this entry (its id, or a unique ending of it)")
    .option("--after <entryId>", "the page that starts after this entry")
    .addHelpText(
      "after",
      examples("skein sessions show trip", "skein sessions show ./trip.jsonl --limit 20 --json"),
    )
    .action((ref: string) => showSession(terminal, ref, command.optsWithGlobals()));
}

export function registerSessionsTree(command: Command, { terminal }: CommandContext): void {
  command
    .argument("<ref>", refHelp)
    .option("--all", "bookkeeping entries too (labels, names, moves of the leaf)")
    .addHelpText("after", examples("skein sessions tree trip", "skein sessions tree ./trip.jsonl --json"))
    .action((ref: string) => showTree(terminal, ref, command.optsWithGlobals()));
}

interface ShowOptions extends GlobalOptions {
  readonly limit?: number;
  readonly before?: string;
  readonly after?: string;
}

/** The key follows the name and is never cut. */
const longestName = 80;

interface Shown {
  readonly history: HistoryPayload;
  readonly title: string;
  readonly findings: readonly Diagnostic[];
}

async function showSession(terminal: Terminal, name: string, options: ShowOptions): Promise<void> {
  const { history, title, findings } = isFileName(name)
    ? await pageOfFile(terminal, name, options)
    : await withCalls(terminal, options, (open) => pageOfSession(open, name, options));
  if (options.json === true) {
    printJson(terminal, history);
    return;
  }
  terminal.out(`${paint(terminal, "bold", wholeLine(title))}\n`);
  if (history.nextBefore !== undefined)
    terminal.out(note(terminal, `earlier: --before ${history.nextBefore}`));
  for (const message of history.messages) printMessage(terminal, message);
  if (history.nextAfter !== undefined)
    terminal.out(`\n${note(terminal, `later: --after ${history.nextAfter}`)}`);
  for (const waiting of history.pending)
    printMessage(terminal, { ...waiting, id: `waits as run ${waiting.runId}` });
  if (history.messages.length === 0) terminal.out(note(terminal, "no messages on this branch"));
  printFindings(terminal, findings);
}

async function pageOfFile(terminal: Terminal, name: string, options: ShowOptions): Promise<Shown> {
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
  const range = await rangeOf(options, (text) => resolveEntry(open, { key, ...reader }, text));
  const history = await calls.call("chat.history", { sessionKey: key, ...range, ...reader });
  const title = options.json === true ? key : await titleOf(open, key);
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

function note(terminal: Terminal, text: string): string {
  return `${paint(terminal, "dim", wholeLine(text))}\n`;
}

async function showTree(
  terminal: Terminal,
  name: string,
  options: GlobalOptions & { readonly all?: boolean },
): Promise<void> {
  const view = isFileName(name)
    ? treeView(await readSessionFile(pathFrom(terminal, name)))
    : await withCalls(terminal, options, async (open) => {
        const { key } = await resolveRef(open, name);
        return fetchTree(open, { key, ...open.reader });
      });
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  printTree(terminal, view, { all: options.all, option: "--all" });
}
