import { escapeToLine } from "../../core/text.ts";
import type { ToolResult } from "../../tools/contract.ts";
import { counted } from "./amounts.ts";
import { answer } from "./answer.ts";
import type { ExitCode } from "./failure.ts";
import type { GlobalOptions } from "./global-options.ts";
import type { ShownMessage } from "./message.ts";
import { printMessage } from "./message.ts";
import { SafeStream } from "./safe-stream.ts";
import { printTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { paint, printJson } from "./terminal.ts";
import type { Row } from "./tool-columns.ts";
import { columnsOf, isRow, shown } from "./tool-columns.ts";

/** What a tool answered: the very result with `--json`, else lines and tables. Gives how the command is to exit. */
export function printToolResult(terminal: Terminal, options: GlobalOptions, result: ToolResult): ExitCode {
  const exit = exitOf(result);
  if (options.json === true) printJson(terminal, result);
  else if (exit === 0) printFields(terminal, result);
  else printRefusal(terminal, result);
  return exit;
}

/** 2 for what the caller typed, 1 for every other refusal. */
export function exitOf({ status, code }: ToolResult): ExitCode {
  if (status !== "error" && status !== "forbidden") return 0;
  return code === "invalid_arguments" ? 2 : 1;
}

function printRefusal(terminal: Terminal, { error, code }: ToolResult): void {
  const text = `${escapeToLine(shown("error", error))} [${escapeToLine(shown("code", code))}]`;
  terminal.err(`${paint(terminal, "red", "error:", "err")} ${text}\n`);
}

/** Texts that are more than a word: they stand below the rest, as they are. */
const texts = ["reply", "result", "text"];

/** Fields in lines; lists of objects as tables below them, what somebody said below those. */
export function printFields(terminal: Terminal, result: ToolResult): void {
  const fields = Object.entries(result).flatMap(([name, value]) => flat(name, value));
  const lists = fields.filter(([, value]) => isTable(value)) as [string, Row[]][];
  const said = fields.filter(([name, value]) => texts.includes(name) && typeof value === "string");
  const lines = fields.filter(([name, value]) => !isTable(value) && !said.some(([each]) => each === name));
  answer(
    terminal,
    {},
    {},
    lines.map(([name, value]) => [name, shown(name, value)] as const),
  );
  for (const [name, rows] of lists) {
    printList(terminal, name, rows);
  }
  // Beside tables, `text` says the same in words for a model.
  const shownTexts = said.filter(([name]) => name !== "text" || lists.length === 0);
  for (const [, text] of shownTexts) printText(terminal, String(text));
}

/** A table; a conversation as `sessions show` has it, since there is no reading it in cells. */
function printList(terminal: Terminal, name: string, rows: readonly Row[]): void {
  const messages = name === "messages" ? rows.filter(isMessage) : [];
  const isConversation = messages.length === rows.length;
  terminal.out(
    `\n${paint(terminal, "bold", name)}: ${isConversation ? rows.length : counted(rows.length, "row")}\n`,
  );
  if (isConversation) for (const message of messages) printMessage(terminal, message);
  else printTable(terminal, columnsOf(name, rows, terminal.now()), rows);
}

function isMessage(row: Row): row is Row & ShownMessage {
  return typeof row.id === "string" && typeof row.role === "string";
}

/** What somebody said, made harmless, on lines of its own. */
export function printText(terminal: Terminal, text: string): void {
  terminal.out(`\n${new SafeStream().push(text.endsWith("\n") ? text : `${text}\n`)}`);
}

function isTable(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isRow);
}

/** An object by its fields, one step deep. */
function flat(name: string, value: unknown): (readonly [string, unknown])[] {
  if (!isRow(value)) return [[name, value]];
  return Object.entries(value).map(([inner, each]) => [`${name}.${inner}`, each]);
}
