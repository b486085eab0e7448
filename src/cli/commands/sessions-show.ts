import { stringifyJson } from "../../core/json.ts";
import { isRecord } from "../../core/shape.ts";
import { escapeUnprintable } from "../../core/text.ts";
import { historyOf } from "../../sessions/history.ts";
import { printFindings } from "../output/findings.ts";
import { entryIdOf, openNamed } from "../output/open-named.ts";
import type { Terminal } from "../output/terminal.ts";
import { oneLine, paint, printJson } from "../output/terminal.ts";

export interface ShowOptions {
  json?: boolean;
  limit?: number;
  before?: string;
  after?: string;
}

/** Prints a page of the active branch. */
export async function showSession(terminal: Terminal, name: string, options: ShowOptions): Promise<void> {
  const tree = await openNamed(terminal, name);
  const { json, limit, before, after } = options;
  const history = historyOf(tree, {
    ...(limit === undefined ? {} : { limit }),
    ...(before === undefined ? {} : { before: entryIdOf(tree, before) }),
    ...(after === undefined ? {} : { after: entryIdOf(tree, after) }),
  });
  if (json === true) {
    printJson(terminal, history);
    return;
  }
  const title = tree.name === null ? history.sessionId : `${tree.name} (${history.sessionId})`;
  terminal.out(`${paint(terminal, "bold", oneLine(title, terminal.columns))}\n`);
  if (history.nextBefore !== undefined)
    terminal.out(note(terminal, `earlier: --before ${history.nextBefore}`));
  for (const message of history.messages) printMessage(terminal, message);
  if (history.nextAfter !== undefined)
    terminal.out(`\n${note(terminal, `later: --after ${history.nextAfter}`)}`);
  if (history.messages.length === 0) terminal.out(note(terminal, "no messages on this branch"));
  printFindings(terminal, tree.diagnostics);
}

const roleColors = new Map<string, "cyan" | "green" | "magenta">([
  ["user", "cyan"],
  ["assistant", "green"],
  ["toolResult", "magenta"],
  ["bashExecution", "magenta"],
]);

interface ShownMessage {
  id: string;
  role: string;
  timestamp?: unknown;
  content?: unknown;
  summary?: unknown;
  command?: unknown;
  output?: unknown;
  toolName?: unknown;
  isError?: unknown;
  errorMessage?: unknown;
}

function printMessage(terminal: Terminal, message: ShownMessage): void {
  const color = roleColors.get(message.role) ?? "yellow";
  const time = typeof message.timestamp === "number" ? new Date(message.timestamp) : null;
  const stamp =
    time === null || Number.isNaN(time.getTime()) ? "" : time.toISOString().slice(0, 19).replace("T", " ");
  const failed = message.isError === true ? " (failed)" : "";
  const tool = typeof message.toolName === "string" ? ` ${message.toolName}${failed}` : "";
  const head = oneLine(`${message.role}${tool}`, 60);
  terminal.out(
    `\n${paint(terminal, color, head)}  ${paint(terminal, "dim", oneLine(`${stamp}  ${message.id}`, 80))}\n`,
  );
  for (const text of textsOf(message)) terminal.out(`${indent(escapeUnprintable(text))}\n`);
}

function textsOf(message: ShownMessage): string[] {
  const { summary, command, output, content, errorMessage } = message;
  const texts = [summary, command, output, content].filter((each) => typeof each === "string");
  const blocks = Array.isArray(content) ? content.map(blockText) : [];
  const error = typeof errorMessage === "string" ? [`error: ${errorMessage}`] : [];
  return texts.concat(blocks, error).filter((text) => text.trim() !== "");
}

function blockText(block: unknown): string {
  if (!isRecord(block)) return "";
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? block.text : "";
    case "thinking":
      return typeof block.thinking === "string" ? `(thinking) ${block.thinking}` : "";
    case "toolCall":
      return `→ ${typeof block.name === "string" ? block.name : "?"} ${stringifyJson(block.arguments)}`;
    default:
      return `[${typeof block.type === "string" ? block.type : "block"}]`;
  }
}

function indent(text: string): string {
  return text.replace(/^/gm, "  ");
}

function note(terminal: Terminal, text: string): string {
  return `${paint(terminal, "dim", oneLine(text, terminal.columns))}\n`;
}
