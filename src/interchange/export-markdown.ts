import type { SessionTree } from "../core/tree.ts";
import type { Branch, EntryView, ReadBlob, ViewPart } from "./export-view.ts";
import { endOfCodeBlock, formatTime, listBranches, noBlobs, toPlainText, viewEntry } from "./export-view.ts";

export interface MarkdownOptions {
  /** `active` (the default) includes only the active branch. `all` includes each branch under its own heading. */
  readonly branches?: "active" | "all";
}

/** Exports a session as Markdown. Message text is quoted so that it cannot be mistaken for part of the page. */
export function* exportMarkdown(
  tree: SessionTree,
  readBlob: ReadBlob = noBlobs,
  options: MarkdownOptions = {},
): Generator<string> {
  const { list, startingAt } = listBranches(tree);
  yield* headText(tree, list.length);
  const isAll = options.branches === "all";
  const branchNotes = (id: string) =>
    (startingAt.get(id) ?? []).map((number) =>
      isAll ? `*Branch ${number} starts here.*\n\n` : "*Another branch starts here.*\n\n",
    );
  for (const branch of isAll ? list : list.slice(0, 1)) {
    if (isAll) yield branchHeading(branch, tree);
    if (branch.number === 1) yield* branchNotes("");
    for (const entry of branch.entries) {
      const view = viewEntry(entry, tree, readBlob);
      if (view === null) continue;
      yield* entryText(view);
      yield* branchNotes(entry.id);
    }
  }
}

function* headText({ header, name }: SessionTree, branchCount: number): Generator<string> {
  yield `# ${escapeMarkdown(name === null ? "Untitled session" : toPlainText(name))}\n\n`;
  yield `- Session: ${inlineCode(toPlainText(header.id))}\n`;
  if (header.cwd) yield `- Folder: ${inlineCode(toPlainText(header.cwd))}\n`;
  if (header.timestamp) yield `- Started: ${escapeMarkdown(toPlainText(formatTime(header.timestamp)))}\n`;
  yield `- Branches: ${branchCount}\n\n`;
}

function branchHeading({ number, from }: Branch, tree: SessionTree): string {
  if (number === 1) return "## Branch 1 (active)\n\n";
  if (from === null) return `## Branch ${number}\n\n*Starts at the root.*\n\n`;
  const time = escapeMarkdown(toPlainText(formatTime(tree.entry(from)?.timestamp ?? "")));
  return `## Branch ${number}\n\n*Starts after the entry from ${time}, ${inlineCode(toPlainText(from))}.*\n\n`;
}

function* entryText(view: EntryView): Generator<string> {
  if (view.kind === "mark") {
    yield `*${escapeMarkdown(view.title)}*\n\n`;
    return;
  }
  const heading = [view.title, ...view.details, view.isFailed ? "failed" : "", formatTime(view.time)];
  const words = heading.filter((word) => word !== "").map(escapeMarkdown);
  yield `### ${words.join(" · ")}\n\n`;
  if (view.label !== null) yield `**Label:** ${escapeMarkdown(view.label)}\n\n`;
  if (view.isHidden) yield "<details>\n<summary>Only for the model</summary>\n\n";
  for (const part of view.parts) yield partText(part);
  if (view.parts.length === 0) yield "*(empty)*\n\n";
  if (view.isHidden) yield "</details>\n\n";
}

function partText(part: ViewPart): string {
  switch (part.kind) {
    case "text":
      return quoteMarkdown(part.text);
    case "thinking":
      return `<details>\n<summary>Thinking</summary>\n\n${quoteMarkdown(part.text)}</details>\n\n`;
    case "call":
      return `**Call** ${inlineCode(part.name)} (${inlineCode(part.id)})\n\n${fenceCode(part.json, "json")}`;
    case "output":
      return `${part.title === null ? "" : `**${escapeMarkdown(part.title)}**\n\n`}${fenceCode(part.text, "")}`;
    case "image":
      return imageText(part.mimeType, part.data);
    case "note":
      return `*${escapeMarkdown(part.text)}*\n\n`;
  }
}

function imageText(mimeType: string, data: string): string {
  const isSafe = /^image\/[\w.+-]+$/.test(mimeType) && /^[A-Za-z0-9+/=]*$/.test(data);
  return isSafe ? `![image](data:${mimeType};base64,${data})\n\n` : "*An image that cannot be shown.*\n\n";
}

/** Returns a code block whose fence is longer than any run of backticks in the text. */
export function fenceCode(text: string, language: string): string {
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}${language}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}\n\n`;
}

export function inlineCode(text: string): string {
  const line = text.replaceAll("\n", " ");
  const longest = longestRun(line);
  const mark = "`".repeat(longest + 1);
  const gap = longest > 0 || line === "" || line.startsWith(" ") ? " " : "";
  return `${mark}${gap}${line}${gap}${mark}`;
}

/** Returns plain text on one line. */
export function escapeMarkdown(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(/[\\`*_{}[\]<>#|!~&]/g, "\\$&");
}

/**
 * Quotes Markdown so that the quotation ends where the text ends, even if the text does not close all of its
 * constructs.
 */
export function quoteMarkdown(text: string): string {
  const lines = escapeTags(text.split("\n"));
  return `${lines.map((line) => (line === "" ? ">" : `> ${line}`)).join("\n")}\n\n`;
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

/**
 * Escapes `<` outside code, where it would start a tag. Code spans are recognized only if each of them ends on its own
 * line. Otherwise, Markdown renderers might disagree about what is code.
 */
function escapeTags(lines: readonly string[]): string[] {
  const isFenced = findFencedLines(lines);
  const spans = lines.map((line, index) => (isFenced[index] === true ? [] : findCodeSpans(line)));
  const isCertain = spans.every((each) => each !== null);
  return lines.map((line, index) =>
    isFenced[index] === true ? line : escapeOutsideSpans(line, isCertain ? (spans[index] ?? []) : []),
  );
}

type Span = readonly [start: number, end: number];

function escapeOutsideSpans(line: string, spans: readonly Span[]): string {
  let text = "";
  let from = 0;
  for (const [start, end] of spans) {
    const span = line.slice(start, end);
    // A vertical bar ends a table cell, and with it the code span.
    const code = span.includes("|") ? span.replaceAll("<", "&lt;") : span;
    text += line.slice(from, start).replaceAll("<", "&lt;") + code;
    from = end;
  }
  return text + line.slice(from).replaceAll("<", "&lt;");
}

/**
 * Returns the lines inside closed code blocks that are not indented. An indented block might belong to a list, which any
 * line with less indentation ends, and the block with it. After a block that ends at different lines inside and outside
 * a list, nothing is certain to be code.
 */
function findFencedLines(lines: readonly string[]): boolean[] {
  const isFenced: boolean[] = lines.map(() => false);
  // Markdown renderers disagree about tabs before and after a fence.
  if (lines.some((line) => line.includes("\t") && /^[ \t]*(?:`{3}|~{3})/.test(line))) return isFenced;
  for (let index = 0; index < lines.length; index++) {
    const end = endOfCodeBlock(lines, index, 3);
    if (end === null) continue;
    const [indent = ""] = /^ */.exec(lines[index] ?? "") ?? [];
    const isInside = (line: string) => line.startsWith(indent) || /^[ \t]*$/.test(line);
    if (end === lines.length || !lines.slice(index, end + 1).every(isInside)) return isFenced;
    if (indent === "") isFenced.fill(true, index, end + 1);
    index = end;
  }
  return isFenced;
}

/** Returns `null` if a run of backticks on the line is not closed. */
function findCodeSpans(line: string): Span[] | null {
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
