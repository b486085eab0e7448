import { pendingIn, readSessionFile } from "../../compose.ts";
import type { Diagnostic } from "../../core/diagnostics.ts";
import { present } from "../../core/present.ts";
import type { HistoryPayload } from "../../protocol/session-payloads.ts";
import type { HistoryRange } from "../../sessions/history.ts";
import { historyOf } from "../../sessions/history.ts";
import { readHistory } from "../../sessions/history-pages.ts";
import { entryIdAmong, findEntryId } from "../folder/find-entry.ts";
import { findSession, isFileName, titleOf } from "../folder/find-session.ts";
import type { Folder } from "../folder/with-folder.ts";
import { withFolder } from "../folder/with-folder.ts";
import { printFindings } from "../output/findings.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import { printMessage } from "../output/message.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, pathFrom, printJson } from "../output/terminal.ts";

export interface ShowOptions extends GlobalOptions {
  readonly limit?: number;
  readonly before?: string;
  readonly after?: string;
}

interface Shown {
  readonly history: HistoryPayload;
  readonly title: string;
  readonly findings: readonly Diagnostic[];
}

/** Prints a page of the active branch. */
export async function showSession(terminal: Terminal, name: string, options: ShowOptions): Promise<void> {
  const { history, title, findings } = isFileName(name)
    ? await pageOfFile(terminal, name, options)
    : await withFolder(terminal, options, (folder) => pageOfSession(folder, name, options));
  if (options.json === true) {
    printJson(terminal, history);
    return;
  }
  terminal.out(`${paint(terminal, "bold", oneLine(title, terminal.columns))}\n`);
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
  const history = historyOf(tree, await rangeOf(options, async (text) => entryIdAmong(ids, text) ?? text));
  const title = tree.name === null ? history.sessionId : `${tree.name} (${history.sessionId})`;
  return { history, title, findings: tree.diagnostics };
}

/** Page by page, so that a long session is not read whole. */
async function pageOfSession(folder: Folder, name: string, options: ShowOptions): Promise<Shown> {
  const record = await findSession(folder, name);
  const range = await rangeOf(options, (text) => findEntryId(folder, record, text));
  const pending = await pendingIn(folder.store, record.uid);
  const history = await readHistory(folder.store.sessions, folder.scope, record, range, pending);
  return { history, title: titleOf(folder, record), findings: [] };
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
  return `${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`;
}
