import { isRecord } from "../../core/is-record.ts";
import { stringifyJson } from "../../core/json.ts";
import { escapeToLine } from "../../core/text.ts";
import type { ToolResult } from "../../tools/session-tool.ts";
import { printLines } from "./answer.ts";
import type { ExitCode } from "./errors.ts";
import { formatAge, formatCost, formatCount, formatTime, pluralize, SafeStream } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import type { ShownMessage } from "./print-session.ts";
import { printMessage } from "./print-session.ts";
import type { Column } from "./table.ts";
import { printTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";
import { paint, printJson } from "./terminal.ts";

/** Prints a tool's result, unchanged if `--json` is set, and returns the exit code. */
export function printToolResult({ terminal, options }: Invocation, result: ToolResult): ExitCode {
  const exit = exitOf(result);
  if (options.json === true) printJson(terminal, result);
  else if (exit === 0) printFields(terminal, result);
  else printRefusal(terminal, result);
  return exit;
}

export function exitOf({ status, code }: ToolResult): ExitCode {
  if (status !== "error" && status !== "forbidden") return 0;
  return code === "invalid_arguments" ? 2 : 1;
}

function printRefusal(terminal: Terminal, { error, code }: ToolResult): void {
  const text = `${escapeToLine(formatValue("error", error))} [${escapeToLine(formatValue("code", code))}]`;
  terminal.err(`${paint(terminal, "red", "error:", "err")} ${text}\n`);
}

/** Long text fields, printed below the others. */
const texts = ["reply", "result", "text"];

/** Prints fields as lines, then lists of objects as tables, then long text fields. */
function printFields(terminal: Terminal, result: ToolResult): void {
  const fields = Object.entries(result).flatMap(([name, value]) => flat(name, value));
  const lists = fields.filter(([, value]) => isTable(value)) as [string, Row[]][];
  const longTexts = fields.filter(([name, value]) => texts.includes(name) && typeof value === "string");
  const lines = fields.filter(
    ([name, value]) => !isTable(value) && !longTexts.some(([each]) => each === name),
  );
  printLines(
    terminal,
    lines.map(([name, value]) => [name, formatValue(name, value)] as const),
  );
  for (const [name, rows] of lists) {
    printList(terminal, name, rows);
  }
  // `text` repeats the tables as prose for a model.
  const printedTexts = longTexts.filter(([name]) => name !== "text" || lists.length === 0);
  for (const [, text] of printedTexts) printText(terminal, String(text));
}

/** Prints a table, or prints messages in the same way as `sessions show`. */
function printList(terminal: Terminal, name: string, rows: readonly Row[]): void {
  const messages = name === "messages" ? rows.filter(isMessage) : [];
  const isConversation = messages.length === rows.length;
  terminal.out(
    `\n${paint(terminal, "bold", name)}: ${isConversation ? rows.length : pluralize(rows.length, "row")}\n`,
  );
  if (isConversation) for (const message of messages) printMessage(terminal, message);
  else printTable(terminal, columnsOf(name, rows, terminal.now()), rows);
}

function isMessage(row: Row): row is Row & ShownMessage {
  return typeof row.id === "string" && typeof row.role === "string";
}

export function printText(terminal: Terminal, text: string): void {
  terminal.out(`\n${new SafeStream().push(text.endsWith("\n") ? text : `${text}\n`)}`);
}

function isTable(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isRecord);
}

/** Flattens an object by one level. */
function flat(name: string, value: unknown): (readonly [string, unknown])[] {
  if (!isRecord(value)) return [[name, value]];
  return Object.entries(value).map(([inner, each]) => [`${name}.${inner}`, each]);
}

type Row = Readonly<Record<string, unknown>>;

/** Returns the columns for a known list in a tool's result. Other lists get one column per field. */
function columnsOf(list: string, rows: readonly Row[], now: number): readonly Column<Row>[] {
  const age = (name: string): Column<Row> => ({
    title: "AGE",
    text: ({ [name]: time }) => (typeof time === "number" ? formatAge(now - time) : ""),
    align: "right",
  });
  switch (list) {
    case "sessions":
      return [
        key,
        plain("kind", { spare: 2 }),
        plain("status"),
        label,
        words("summary", "ABOUT"),
        { title: "LAST MESSAGE", text: lastMessage, least: 36 },
        model,
        tokens,
        { title: "COST", text: costOf, align: "right", spare: 3 },
        age("updatedAt"),
      ];
    case "active":
    case "recent":
    case "children":
      return [
        { ...key, text: ({ sessionKey }) => formatValue("", sessionKey) },
        plain("status"),
        label,
        words("task"),
        { title: "TOOK", text: tookOf, align: "right", spare: 3 },
        tokens,
      ];
    case "hits":
      return [key, plain("role"), words("snippet", "FOUND"), age("time")];
    default:
      return everyColumn(rows);
  }
}

const key: Column<Row> = { title: "KEY", text: ({ key: name }) => formatValue("", name), whole: true };
const label: Column<Row> = { title: "LABEL", text: (row) => formatValue("", row.label), least: 8 };
const model: Column<Row> = { title: "MODEL", text: (row) => formatValue("", row.model), least: 8, spare: 5 };
const tokens: Column<Row> = { title: "TOKENS", text: tokensOf, align: "right", spare: 4 };

function plain(name: string, more: Partial<Column<Row>> = {}): Column<Row> {
  return { title: name.toUpperCase(), text: (row) => formatValue(name, row[name]), ...more };
}

function words(name: string, title = name.toUpperCase()): Column<Row> {
  return { title, text: (row) => formatValue(name, row[name]), least: 20 };
}

function tokensOf({ totalTokens: count }: Row): string {
  return typeof count === "number" && count > 0 ? formatCount(count) : "";
}

function costOf({ estimatedCostUsd: usd }: Row): string {
  return typeof usd === "number" ? formatCost(usd) : "";
}

function tookOf({ runtimeMs: ms }: Row): string {
  if (typeof ms !== "number") return "";
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)}s` : formatAge(ms);
}

/** Returns the last message in a row, or the reason why the messages could not be read. */
function lastMessage({ messages, messagesRefused, messagesError }: Row): string {
  const refused = messagesRefused ?? messagesError;
  if (refused !== undefined) return `(${formatValue("", refused)})`;
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  return isRecord(last) ? `${formatValue("", last.role)}: ${formatValue("", last.content)}` : "";
}

const most = 8;
/** Fields that are shown first. */
const first = ["key", "sessionKey", "id", "name", "role", "kind", "label", "status", "content"];

function everyColumn(rows: readonly Row[]): Column<Row>[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const rank = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);
  return names
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, most)
    .map((name, index) => ({
      title: titleOf(name),
      text: (row) => formatValue(name, row[name]),
      ...(isName.test(name) ? { whole: true } : { least: Math.max(8, titleOf(name).length) }),
      ...(index < 2 ? {} : { spare: index }),
    }));
}

/** Names of fields that other calls accept. */
const isName = /^(?:key|id)$|(?:Key|Id)$/;

/** Turns `updatedAt` into UPDATED AT. */
function titleOf(name: string): string {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toUpperCase();
}

/** Formats a value. Times become dates, message blocks become their text, and other objects become JSON. */
function formatValue(name: string, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number" && /(?:At|timestamp)$/.test(name)) return formatTime(value);
  if (Array.isArray(value)) return value.map((each) => blockText(each) ?? formatValue("", each)).join(", ");
  return typeof value === "object" ? stringifyJson(value) : String(value);
}

function blockText(block: unknown): string | null {
  return isRecord(block) && typeof block.text === "string" ? block.text : null;
}
