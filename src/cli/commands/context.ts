import { contextView } from "../../sessions/context-view.ts";
import { previewOfMessage } from "../../sessions/preview.ts";
import { printFindings } from "../output/findings.ts";
import { openNamed } from "../output/open-named.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, pad, paint, printJson } from "../output/terminal.ts";

/** Prints what a model would be sent from where the session stands. */
export async function showContext(
  terminal: Terminal,
  name: string,
  options: { json?: boolean },
): Promise<void> {
  const view = contextView(await openNamed(terminal, name));
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
