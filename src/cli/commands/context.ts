import { readSessionFile } from "../../compose.ts";
import type { SessionContext } from "../../core/context.ts";
import { contextView } from "../../sessions/context-view.ts";
import { previewOfMessage } from "../../sessions/preview.ts";
import { noSuchSession } from "../../store/refusals.ts";
import { findSession, isFileName } from "../folder/find-session.ts";
import { withFolder } from "../folder/with-folder.ts";
import { printFindings } from "../output/findings.ts";
import type { GlobalOptions } from "../output/global-options.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, pad, paint, pathFrom, printJson } from "../output/terminal.ts";

/** Prints what a model would be sent from where the session stands. */
export async function showContext(terminal: Terminal, name: string, options: GlobalOptions): Promise<void> {
  const view = contextView(await contextOf(terminal, name, options));
  if (options.json === true) {
    printJson(terminal, view);
    return;
  }
  const { provider, model, thinkingLevel, system, messages } = view.request;
  const rows = [
    ["model", model === undefined ? "not known" : `${provider}/${model}`],
    ["thinking", thinkingLevel],
    ...(system === undefined ? [] : [["system", system]]),
    ["messages", String(messages.length)],
  ] as const;
  for (const [title = "", value = ""] of rows) {
    terminal.out(`${paint(terminal, "bold", pad(title, 10))}${oneLine(value, terminal.columns - 10)}\n`);
  }
  if (messages.length > 0) terminal.out("\n");
  const width = String(messages.length).length;
  for (const [index, message] of messages.entries()) {
    const place = String(index + 1).padStart(width);
    const role = pad(oneLine(message.role, 12), 12);
    const preview = oneLine(previewOfMessage(message), terminal.columns - width - 15);
    terminal.out(`${paint(terminal, "dim", place)} ${role} ${preview}\n`);
  }
  printFindings(terminal, view.diagnostics);
}

async function contextOf(terminal: Terminal, name: string, options: GlobalOptions): Promise<SessionContext> {
  if (isFileName(name)) return (await readSessionFile(pathFrom(terminal, name))).context();
  return withFolder(terminal, options, async (folder) => {
    const { sessionId } = await findSession(folder, name);
    return (await folder.store.sessions.context(folder.scope, sessionId)) ?? noSuchSession(sessionId);
  });
}
