import { isRecord } from "../../core/is-record.ts";
import { stringifyJson } from "../../core/json.ts";
import { escapeUnprintable } from "../../core/text.ts";
import type { TreePayload, TreeRow } from "../../protocol/session-views.ts";
import { printFindings } from "./answer.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, spread } from "./terminal.ts";

interface TreeStyle {
  /** `true` to also draw bookkeeping entries. */
  readonly all?: boolean | undefined;
  /** The option that shows bookkeeping entries, mentioned in the hint. */
  readonly option?: "--all";
}

export function printTree(
  terminal: Terminal,
  view: TreePayload,
  { all = false, option }: TreeStyle = {},
): void {
  const rows = all ? view.entries : withoutBookkeeping(view.entries);
  const how = option === undefined ? "not shown" : `more with ${option}`;
  terminal.out(`${heading(terminal, view, rows, how)}\n`);
  for (const { rails, entry } of drawTree(rows)) terminal.out(`${drawn(terminal, view, rails, entry)}\n`);
  printFindings(terminal, view.diagnostics ?? []);
}

/** Removes bookkeeping entries and attaches their children to the nearest remaining ancestor. */
function withoutBookkeeping(entries: readonly TreeRow[]): TreeRow[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const shown = new Map<string, string | null>();
  const shownAbove = (id: string | null): string | null => {
    const passed: string[] = [];
    let at = id;
    for (let entry = byId.get(at ?? ""); entry?.bookkeeping === true; entry = byId.get(at ?? "")) {
      const known = shown.get(entry.id);
      passed.push(entry.id);
      at = known === undefined ? entry.parentId : known;
      if (known !== undefined) break;
    }
    for (const each of passed) shown.set(each, at);
    return at;
  };
  return entries
    .filter(({ bookkeeping }) => !bookkeeping)
    .map((entry) => ({ ...entry, parentId: shownAbove(entry.parentId) }));
}

function heading(terminal: Terminal, view: TreePayload, rows: readonly TreeRow[], how: string): string {
  const parents = new Set(rows.map((entry) => entry.parentId).filter((id) => id !== null));
  const ends = rows.filter((entry) => !parents.has(entry.id)).length;
  const hidden = view.entries.length - rows.length;
  const more = hidden === 0 ? "" : ` (${hidden} ${how})`;
  const counts = `${count(rows.length, "entry", "entries")}, ${count(ends, "branch", "branches")}${more}`;
  const title = oneLine(view.name ?? view.sessionId, terminal.columns - counts.length - 2);
  return `${paint(terminal, "bold", title)}  ${counts}`;
}

function drawn(terminal: Terminal, view: TreePayload, rails: string, entry: TreeRow): string {
  const what = pad(oneLine(shortNames.get(entry.role ?? entry.type) ?? entry.role ?? entry.type, 22), 10);
  const label = entry.label === undefined ? "" : ` [${oneLine(entry.label, 30)}]`;
  const leaf = entry.id === view.leafId ? " ◀ leaf" : "";
  const id = shortId(entry.id);
  const used = rails.length + 2 + what.length + 1 + label.length + leaf.length + id.length + 2;
  const preview = oneLine(entry.preview, Math.max(20, terminal.columns - used));
  const body = entry.active ? `${what} ${preview}` : paint(terminal, "dim", `${what} ${preview}`);
  const left = [
    paint(terminal, "dim", rails),
    `${paint(terminal, signColor(entry), signs.get(entry.type) ?? "·")} ${body}`,
    paint(terminal, "yellow", label),
    paint(terminal, "green", leaf),
  ].join("");
  return spread(terminal, left, paint(terminal, "dim", id));
}

const shortNames = new Map(
  Object.entries({
    toolResult: "tool",
    bashExecution: "shell",
    branch_summary: "summary",
    session_info: "name",
    model_change: "model",
    thinking_level_change: "thinking",
  }),
);

const signs = new Map(
  Object.entries({
    message: "●",
    custom_message: "●",
    compaction: "▣",
    branch_summary: "↩",
  }),
);

function signColor(entry: TreeRow): "cyan" | "green" | "yellow" | "dim" {
  if (entry.type === "compaction" || entry.type === "branch_summary") return "yellow";
  if (entry.role === "user") return "cyan";
  return entry.role === "assistant" ? "green" : "dim";
}

/** IDs start with the time, so only the end distinguishes entries. */
function shortId(id: string): string {
  return oneLine(id.length > 12 ? `…${id.slice(-8)}` : id, 12);
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

interface DrawnEntry {
  readonly id: string;
  readonly parentId: string | null;
}

interface DrawnLine<T> {
  /** The connecting lines to the left of the entry. */
  readonly rails: string;
  readonly entry: T;
}

/** Deeper branches are drawn at this depth with a marker so that lines do not get longer as the tree gets deeper. */
const deepest = 24;

/**
 * Draws a forest, one line per entry, in file order. The last child of an entry continues in the same column. The other
 * children and additional roots are indented. Not recursive, because trees can be deep.
 */
export function* drawTree<T extends DrawnEntry>(entries: readonly T[]): Generator<DrawnLine<T>> {
  const children = new Map<string | null, T[]>();
  for (const entry of entries) {
    const siblings = children.get(entry.parentId);
    if (siblings === undefined) children.set(entry.parentId, [entry]);
    else siblings.push(entry);
  }
  const waiting: { entry: T; rails: string; below: string; depth: number }[] = [];
  const push = (parent: string | null, below: string, depth: number) => {
    const kin = children.get(parent) ?? [];
    for (let index = kin.length - 1; index >= 0; index--) {
      const entry = kin[index] as T;
      const last = index === kin.length - 1;
      const roots = parent === null && kin.length > 1;
      if (last && !roots) waiting.push({ entry, rails: below, below, depth });
      else if (depth >= deepest) waiting.push({ entry, rails: `${below}…`, below, depth });
      else {
        const rails = `${below}${last ? "└─" : "├─"}`;
        waiting.push({ entry, rails, below: `${below}${last ? "  " : "│ "}`, depth: depth + 1 });
      }
    }
  };
  push(null, "", 0);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield { rails: next.rails, entry: next.entry };
    push(next.entry.id, next.below, next.depth);
  }
}

const roleColors = new Map<string, "cyan" | "green" | "magenta">([
  ["user", "cyan"],
  ["assistant", "green"],
  ["toolResult", "magenta"],
  ["bashExecution", "magenta"],
]);

export interface ShownMessage {
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
  provenance?: unknown;
}

export function printMessage(terminal: Terminal, message: ShownMessage): void {
  const color = roleColors.get(message.role) ?? "yellow";
  const time = typeof message.timestamp === "number" ? new Date(message.timestamp) : null;
  const stamp =
    time === null || Number.isNaN(time.getTime()) ? "" : time.toISOString().slice(0, 19).replace("T", " ");
  const failed = message.isError === true ? " (failed)" : "";
  const tool = typeof message.toolName === "string" ? ` ${message.toolName}${failed}` : "";
  const head = oneLine(`${message.role}${tool}${writerOf(message)}`, 120);
  terminal.out(
    `\n${paint(terminal, color, head)}  ${paint(terminal, "dim", oneLine(`${stamp}  ${message.id}`, 80))}\n`,
  );
  for (const text of textsOf(message)) terminal.out(`${indent(escapeUnprintable(text))}\n`);
}

/** Returns the author, unless the author is the session's user or its agent. */
function writerOf({ provenance }: ShownMessage): string {
  if (!isRecord(provenance)) return "";
  const { sourcePeerName, sourcePeer, sourceSessionKey } = provenance;
  const writer = [sourcePeerName, sourcePeer, sourceSessionKey].find((each) => typeof each === "string");
  return writer === undefined ? "" : ` from ${writer}`;
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
