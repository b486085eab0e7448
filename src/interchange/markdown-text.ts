import { endOfFence, openingFence } from "./code-fence.ts";

/** Text from outside inside Markdown, so that it stays inside. */

/** A fence longer than any in the text, so that nothing in it is its end. */
export function fenced(text: string, language: string): string {
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}\n\n`;
}

/** A word or two to the letter, in a line. */
export function code(text: string): string {
  const line = text.replaceAll("\n", " ");
  const longest = longestRun(line);
  const mark = "`".repeat(longest + 1);
  const gap = longest > 0 || line === "" || line.startsWith(" ") ? " " : "";
  return `${mark}${gap}${line}${gap}${mark}`;
}

/** Plain words in a line: no character of them means anything. */
export function inLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/[\\`*_{}[\]<>#|!~&]/g, "\\$&");
}

/** Somebody's Markdown as a quotation: it ends where the quotation ends, whatever it leaves open. */
export function quoted(text: string): string {
  const lines = withoutHtml(text.split("\n"));
  return `${lines.map((line) => (line === "" ? ">" : `> ${line}`)).join("\n")}\n\n`;
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

/**
 * Takes from `<` the power to begin a tag, but for code, where it has none. Code spans count only if all of them end
 * on their lines: else what is code here may be something else to a reader.
 */
function withoutHtml(lines: readonly string[]): string[] {
  const inFence = fencedLines(lines);
  const spans = lines.map((line, index) => (inFence[index] === true ? [] : spansIn(line)));
  const sure = spans.every((each) => each !== null);
  return lines.map((line, index) =>
    inFence[index] === true ? line : escapeOutside(line, sure ? (spans[index] ?? []) : []),
  );
}

type Span = readonly [start: number, end: number];

function escapeOutside(line: string, spans: readonly Span[]): string {
  let text = "";
  let from = 0;
  for (const [start, end] of spans) {
    const span = line.slice(start, end);
    // A bar ends a cell of a table, and with it the code.
    const shown = span.includes("|") ? span.replaceAll("<", "&lt;") : span;
    text += line.slice(from, start).replaceAll("<", "&lt;") + shown;
    from = end;
  }
  return text + line.slice(from).replaceAll("<", "&lt;");
}

/** The lines of fenced blocks that have an end. Indented ones may belong to a list, and end with it: they do not count. */
function fencedLines(lines: readonly string[]): boolean[] {
  const inside: boolean[] = lines.map(() => false);
  for (let index = 0; index < lines.length; index++) {
    const fence = openingFence(lines[index] ?? "", 0);
    if (fence === null) continue;
    const close = endOfFence(lines, index, fence);
    if (close === lines.length) return inside;
    inside.fill(true, index, close + 1);
    index = close;
  }
  return inside;
}

/** The code spans of a line; `null` when a run of backticks has no partner in it. */
function spansIn(line: string): Span[] | null {
  if (line.includes("\\`")) return null;
  const runs = Array.from(line.matchAll(/`+/g), (run) => ({ at: run.index, length: run[0].length }));
  const spans: Span[] = [];
  for (let index = 0; index < runs.length; ) {
    const open = runs[index] as { at: number; length: number };
    const partner = runs.findIndex(({ length }, later) => later > index && length === open.length);
    if (partner === -1) return null;
    spans.push([open.at, (runs[partner]?.at ?? 0) + open.length]);
    index = partner + 1;
  }
  return spans;
}
