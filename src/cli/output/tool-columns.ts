import { stringifyJson } from "../../core/json.ts";
import { shownAge, shownCost, shownCount } from "./amounts.ts";
import type { Column } from "./table.ts";
import { shownTime } from "./times.ts";

export type Row = Readonly<Record<string, unknown>>;

/** The columns of a list in a tool's result: those that people look for in a list of this name, else what there is. */
export function columnsOf(list: string, rows: readonly Row[], now: number): readonly Column<Row>[] {
  const age = (name: string): Column<Row> => ({
    title: "AGE",
    text: ({ [name]: time }) => (typeof time === "number" ? shownAge(now - time) : ""),
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
        { ...key, text: ({ sessionKey }) => shown("", sessionKey) },
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

const key: Column<Row> = { title: "KEY", text: ({ key: name }) => shown("", name), whole: true };
const label: Column<Row> = { title: "LABEL", text: (row) => shown("", row.label), least: 8 };
const model: Column<Row> = { title: "MODEL", text: (row) => shown("", row.model), least: 8, spare: 5 };
const tokens: Column<Row> = { title: "TOKENS", text: tokensOf, align: "right", spare: 4 };

function plain(name: string, more: Partial<Column<Row>> = {}): Column<Row> {
  return { title: name.toUpperCase(), text: (row) => shown(name, row[name]), ...more };
}

function words(name: string, title = name.toUpperCase()): Column<Row> {
  return { title, text: (row) => shown(name, row[name]), least: 20 };
}

function tokensOf({ totalTokens: count }: Row): string {
  return typeof count === "number" && count > 0 ? shownCount(count) : "";
}

function costOf({ estimatedCostUsd: usd }: Row): string {
  return typeof usd === "number" ? shownCost(usd) : "";
}

function tookOf({ runtimeMs: ms }: Row): string {
  if (typeof ms !== "number") return "";
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)}s` : shownAge(ms);
}

/** Of a row that came with messages; where they may not be read, why. */
function lastMessage({ messages, messagesRefused, messagesError }: Row): string {
  const refused = messagesRefused ?? messagesError;
  if (refused !== undefined) return `(${shown("", refused)})`;
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : undefined;
  return isRow(last) ? `${shown("", last.role)}: ${shown("", last.content)}` : "";
}

const most = 8;
/** Those that a list is looked at for, before all others. */
const first = ["key", "sessionKey", "id", "name", "role", "kind", "label", "status", "content"];

function everyColumn(rows: readonly Row[]): Column<Row>[] {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const rank = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);
  return names
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, most)
    .map((name, index) => ({
      title: titleOf(name),
      text: (row) => shown(name, row[name]),
      ...(isName.test(name) ? { whole: true } : { least: Math.max(8, titleOf(name).length) }),
      ...(index < 2 ? {} : { spare: index }),
    }));
}

/** Fields that other calls take. */
const isName = /^(?:key|id)$|(?:Key|Id)$/;

/** `updatedAt` as UPDATED AT. */
function titleOf(name: string): string {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toUpperCase();
}

export function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as people read it: times as such, what was said of blocks, and JSON only where nothing else is left. */
export function shown(name: string, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number" && /(?:At|timestamp)$/.test(name)) return shownTime(value);
  if (Array.isArray(value)) return value.map((each) => saidIn(each) ?? shown("", each)).join(", ");
  return typeof value === "object" ? stringifyJson(value) : String(value);
}

/** The text of a block of a message. */
function saidIn(block: unknown): string | null {
  return isRow(block) && typeof block.text === "string" ? block.text : null;
}
