import { escapeUnprintable } from "../../core/text.ts";
import type { ContextPayload } from "../../protocol/session-payloads.ts";
import { previewOfMessage } from "../../sessions/preview.ts";
import { printFindings } from "./answer.ts";
import { counted, shownCount } from "./format.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, wholeLine } from "./terminal.ts";

const titleWidth = 10;
const barWidth = 30;
const mostChanges = 200;
/** A note is what was asked for, and is not cut at the terminal's edge. */
const longestNote = 1000;

/** What a model would be sent, for people: who, how much of what, and the messages in order. */
export function printContext(terminal: Terminal, view: ContextPayload, explain: boolean): void {
  const { provider, model, api, thinkingLevel, system, messages, tools } = view.request;
  const wire = api === undefined ? "" : ` (${api})`;
  const changes = view.changes.length;
  row(terminal, "model", model === undefined ? "not known" : `${provider}/${model}${wire}`);
  row(terminal, "thinking", thinkingLevel);
  if (system !== undefined) row(terminal, "system", system);
  // Names are for other commands and rules: they are not cut.
  if (tools !== undefined)
    terminal.out(`${paint(terminal, "bold", pad("tools", titleWidth))}${wholeLine(toolsText(tools))}\n`);
  row(terminal, "messages", String(messages.length));
  if (api !== undefined) row(terminal, "changes", changesText(changes, explain));
  printTokens(terminal, view.tokens);
  if (messages.length > 0) terminal.out("\n");
  const width = String(messages.length).length;
  for (const [index, message] of messages.entries()) {
    const place = String(index + 1).padStart(width);
    const role = pad(oneLine(message.role, 12), 12);
    const preview = oneLine(previewOfMessage(message), terminal.columns - width - 15);
    terminal.out(`${paint(terminal, "dim", place)} ${role} ${preview}\n`);
  }
  if (explain) printChanges(terminal, view.changes);
  printFindings(terminal, view.diagnostics);
}

function toolsText(tools: readonly { readonly name: string }[]): string {
  return tools.length === 0 ? "none" : `${tools.length}: ${tools.map(({ name }) => name).join(", ")}`;
}

function changesText(count: number, explain: boolean): string {
  if (count === 0) return "none";
  return explain ? String(count) : `${count}; --explain tells them`;
}

function row(terminal: Terminal, title: string, value: string): void {
  const shown = oneLine(value, terminal.columns - titleWidth);
  terminal.out(`${paint(terminal, "bold", pad(title, titleWidth))}${shown}\n`);
}

const partNames = {
  system: "system",
  tools: "tools",
  summary: "summary",
  user: "user",
  assistant: "assistant",
  thinking: "thinking",
  toolCalls: "tool calls",
  toolResults: "tool results",
  images: "images",
} as const;

/** A bar for each part that has something in it, as long as its share of the whole. */
function printTokens(terminal: Terminal, tokens: ContextPayload["tokens"]): void {
  const { total, window } = tokens;
  const share = window === undefined ? "" : ` of ${shownCount(window)} (${percent(total, window)})`;
  row(terminal, "tokens", `about ${shownCount(total)}${share}`);
  if (window !== undefined && total > window)
    row(terminal, "", "more than the window: a run would compact first");
  const rows = Object.entries(partNames)
    .map(([part, name]) => ({ name, count: tokens[part as keyof typeof partNames] ?? 0 }))
    .filter(({ count }) => count > 0);
  const widths = rows.map(({ count }) => shownCount(count).length);
  const width = Math.max(0, ...widths);
  for (const { name, count } of rows) {
    const bar = "█".repeat(Math.max(1, Math.round((barWidth * count) / total)));
    const text = `${pad(name, 14)}${shownCount(count).padStart(width)}  ${bar}`;
    terminal.out(`${" ".repeat(titleWidth)}${oneLineOfParts(text, terminal.columns - titleWidth)}\n`);
  }
}

/** Names and figures of ours: nothing to escape, and the blanks between them stay. */
function oneLineOfParts(text: string, columns: number): string {
  return text.slice(0, Math.max(0, columns));
}

function percent(part: number, whole: number): string {
  const value = whole === 0 ? 0 : (100 * part) / whole;
  return value > 0 && value < 1 ? "<1%" : `${Math.round(value)}%`;
}

/** In the order of the steps; each with the entry that it was done to. */
function printChanges(terminal: Terminal, changes: ContextPayload["changes"]): void {
  let step = "";
  for (const change of changes.slice(0, mostChanges)) {
    if (change.step !== step) {
      step = change.step;
      terminal.out(`\n${paint(terminal, "bold", oneLine(step, terminal.columns))}\n`);
    }
    const where = change.entryId === undefined ? "" : `…${change.entryId.slice(-8)} `;
    const text = `${where}${change.kind}: ${change.note}`;
    terminal.out(`  ${oneLine(text, longestNote)}\n`);
  }
  const left = changes.length - mostChanges;
  if (left > 0) terminal.out(`  and ${counted(left, "change")} more; --json shows them all\n`);
}

/** The body of the request, for people and for programs that read JSON. */
export function printWire(terminal: Terminal, body: unknown, below: boolean): void {
  if (below) terminal.out(`\n${paint(terminal, "bold", "wire")}\n`);
  terminal.out(`${escapeUnprintable(JSON.stringify(body, null, 2))}\n`);
}
