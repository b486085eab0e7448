import type { TreePayload, TreeRow } from "../../protocol/session-payloads.ts";
import { drawTree } from "./draw-tree.ts";
import { printFindings } from "./findings.ts";
import type { Terminal } from "./terminal.ts";
import { oneLine, pad, paint, spread } from "./terminal.ts";

export interface TreeStyle {
  /** Bookkeeping too. */
  readonly all?: boolean | undefined;
  /** What draws that, where it can be said. */
  readonly option?: "--all";
}

/** Draws every branch. */
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

/** The rows that are conversation, each hung on the nearest such row above it. */
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

/** Counts what is drawn; what is left out of it is told. */
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

/** The end of an id tells entries of one session apart; its beginning is only the time. */
function shortId(id: string): string {
  return oneLine(id.length > 12 ? `…${id.slice(-8)}` : id, 12);
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
