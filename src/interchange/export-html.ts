import type { Entry } from "../core/entries.ts";
import { textOf } from "../core/messages.ts";
import type { SessionTree } from "../core/tree.ts";
import type { Branch, Branches, EntryView, ReadBlob, ViewPart } from "./export-view.ts";
import {
  endOfCodeBlock,
  formatTime,
  isShown,
  listBranches,
  noBlobs,
  toPlainText,
  viewEntry,
} from "./export-view.ts";
import { style } from "./html-style.ts";

/** Forbids scripts and requests, regardless of the session's content. */
const contentSecurityPolicy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/** Exports a session as one HTML file with every branch, no scripts and no external resources. */
export function* exportHtml(tree: SessionTree, readBlob: ReadBlob = noBlobs): Generator<string> {
  const page = new Page(tree, readBlob);
  yield* page.head();
  yield* page.contents();
  yield '<main id="main">\n';
  for (const branch of page.branches.list) yield* page.branch(branch);
  yield "</main>\n<footer>Exported from Skein.</footer>\n</body>\n</html>\n";
}

class Page {
  readonly branches: Branches;
  readonly #tree: SessionTree;
  readonly #readBlob: ReadBlob;
  /** Anchors are numbered because an entry's ID might come from outside and must not become markup. */
  readonly #anchors = new Map<string, string>();

  constructor(tree: SessionTree, readBlob: ReadBlob) {
    this.#tree = tree;
    this.#readBlob = readBlob;
    this.branches = listBranches(tree);
    for (const { entries } of this.branches.list)
      for (const entry of entries)
        if (isShown(entry)) this.#anchors.set(entry.id, `m${this.#anchors.size + 1}`);
  }

  *head(): Generator<string> {
    const { header, name } = this.#tree;
    const title = escapeHtml(name === null ? "Untitled session" : toPlainText(name));
    yield `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n`;
    yield `<meta http-equiv="Content-Security-Policy" content="${contentSecurityPolicy}">\n`;
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n';
    yield `<title>${title}</title>\n<style>${style}</style>\n</head>\n<body>\n`;
    yield `<a class="skip" href="#main">Skip to the conversation</a>\n<header>\n<h1 dir="auto">${title}</h1>\n<dl>\n`;
    const started = header.timestamp === undefined ? "" : formatTime(header.timestamp);
    const rows = { Session: header.id, Folder: header.cwd ?? "", Started: started };
    for (const [term, value] of Object.entries(rows))
      if (value !== "") yield `<dt>${term}</dt><dd>${escapeHtml(toPlainText(value))}</dd>\n`;
    yield "</dl>\n</header>\n";
  }

  /** Yields links to the prompts on the active branch and to the other branches. */
  *contents(): Generator<string> {
    const { list } = this.branches;
    const prompts = (list[0]?.entries ?? []).flatMap((entry) => this.#prompt(entry) ?? []);
    if (prompts.length < 2 && list.length < 2) return;
    yield '<nav aria-label="Contents">\n';
    if (prompts.length > 1) {
      yield `<details>\n<summary>Prompts (${prompts.length})</summary>\n<ol>\n`;
      for (const { anchor, words } of prompts)
        yield `<li><a href="#${anchor}" dir="auto">${words}</a></li>\n`;
      yield "</ol>\n</details>\n";
    }
    if (list.length > 1) {
      yield "<h2>Branches</h2>\n<ol>\n";
      for (const branch of list) {
        const prompt = branch.entries.map((entry) => this.#prompt(entry)).find((each) => each !== null);
        const words = prompt == null ? "" : `: ${prompt.words}`;
        yield `<li><a href="#b${branch.number}" dir="auto">${branchName(branch)}${words}</a></li>\n`;
      }
      yield "</ol>\n";
    }
    yield "</nav>\n";
  }

  *branch(branch: Branch): Generator<string> {
    const { number, from, entries } = branch;
    const heading = this.branches.list.length > 1 ? branchName(branch) : "Conversation";
    yield `<section aria-labelledby="b${number}">\n<h2 id="b${number}">${heading}</h2>\n`;
    if (number === 1) yield* this.#branchLinks("");
    else if (from === null) yield '<p class="note">Starts at the root.</p>\n';
    else
      yield `<p class="note">Starts after <a href="#${this.#anchors.get(from)}">an earlier message</a>.</p>\n`;
    for (const entry of entries) {
      const view = viewEntry(entry, this.#tree, this.#readBlob);
      if (view === null) continue;
      yield* entryHtml(view, this.#anchors.get(view.id) ?? "");
      yield* this.#branchLinks(view.id);
    }
    yield "</section>\n";
  }

  *#branchLinks(id: string): Generator<string> {
    const numbers = this.branches.startingAt.get(id) ?? [];
    const links = numbers.map((number) => `<a href="#b${number}">Branch ${number}</a>`);
    if (links.length > 0) yield `<p class="mark">Starting here: ${links.join(", ")}</p>\n`;
  }

  #prompt(entry: Entry): { anchor: string; words: string } | null {
    if (entry.type !== "message" || entry.message.role !== "user") return null;
    const text = toPlainText(textOf(entry.message.content).slice(0, 400));
    return { anchor: this.#anchors.get(entry.id) ?? "", words: escapeHtml(shorten(text, 90)) || "(no text)" };
  }
}

function branchName({ number }: Branch): string {
  return `Branch ${number}${number === 1 ? " (active)" : ""}`;
}

function* entryHtml(view: EntryView, anchor: string): Generator<string> {
  const title = escapeHtml(view.title);
  if (view.kind === "mark") {
    yield `<p class="mark" id="${anchor}">${title}</p>\n`;
    return;
  }
  yield `<article class="${view.kind}" id="${anchor}">\n<div><h3>${title}</h3>${detailsHtml(view)}</div>\n`;
  if (view.isHidden) yield "<details>\n<summary>Only for the model</summary>\n";
  for (const part of view.parts) yield* partHtml(part, view);
  if (view.parts.length === 0) yield '<p class="note">(empty)</p>\n';
  if (view.isHidden) yield "</details>\n";
  yield "</article>\n";
}

function detailsHtml({ label, isFailed, details, time }: EntryView): string {
  const words = [
    ...(label === null ? [] : [`<span class="label">${escapeHtml(label)}</span>`]),
    ...(isFailed ? ['<strong class="bad">failed</strong>'] : []),
    ...details.map((detail) => `<span>${escapeHtml(detail)}</span>`),
    ...(time === "" ? [] : [`<time datetime="${time}">${formatTime(time)}</time>`]),
  ];
  return words.length === 0 ? "" : ` <span class="about">${words.join(" ")}</span>`;
}

function* partHtml(part: ViewPart, view: EntryView): Generator<string> {
  switch (part.kind) {
    case "text":
      yield '<div dir="auto">\n';
      yield* proseHtml(part.text);
      yield "</div>\n";
      return;
    case "thinking":
      yield '<details>\n<summary>Thinking</summary>\n<div dir="auto">\n';
      yield* proseHtml(part.text);
      yield "</div>\n</details>\n";
      return;
    case "call":
      yield foldedHtml(`Call <b>${escapeHtml(part.name)}</b>`, part.json);
      return;
    case "output":
      yield foldedHtml(
        `<b>${escapeHtml(part.title ?? (view.isFailed ? "Error output" : "Output"))}</b>`,
        part.text,
      );
      return;
    case "image":
      yield imageHtml(part.mimeType, part.data);
      return;
    case "note":
      yield `<p class="note">${escapeHtml(part.text)}</p>\n`;
  }
}

function foldedHtml(title: string, text: string): string {
  const summary = `<summary>${title} ${escapeHtml(shorten(text, 80))}</summary>`;
  return `<details>\n${summary}\n<pre>\n${escapeHtml(text)}</pre>\n</details>\n`;
}

/** Allows only raster formats, because an SVG could contain scripts. */
function imageHtml(mimeType: string, data: string): string {
  const isSafe = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/.test(mimeType) && /^[A-Za-z0-9+/=]+$/.test(data);
  if (!isSafe) return '<p class="note">An image that cannot be shown.</p>\n';
  return `<img alt="Image in the message" src="data:${mimeType};base64,${data}">\n`;
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => escapes[char] ?? char);
}

/** Returns the beginning of the text on one line. */
function shorten(text: string, maxLength: number): string {
  const line = text
    .slice(0, maxLength * 8)
    .replaceAll(/\s+/g, " ")
    .trim();
  const characters = [...line.slice(0, maxLength * 2)];
  return characters.length > maxLength
    ? `${characters.slice(0, maxLength - 1).join("")}…`
    : characters.join("");
}

/** Renders paragraphs, headings, code and bold text. Other Markdown is left as it is. */
function* proseHtml(text: string): Generator<string> {
  const lines = text.split("\n");
  let paragraph: string[] = [];
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] ?? "";
    const end = endOfCodeBlock(lines, index, 3);
    const heading = /^#{1,6} +(.*)$/.exec(line)?.[1];
    if (line.trim() !== "" && end === null && heading === undefined) {
      paragraph.push(line);
      continue;
    }
    yield paragraphHtml(paragraph);
    paragraph = [];
    if (heading !== undefined) yield `<p class="heading">${inlineHtml(heading)}</p>\n`;
    if (end === null) continue;
    yield `<pre><code>${escapeHtml(lines.slice(index + 1, end).join("\n"))}</code></pre>\n`;
    index = end;
  }
  yield paragraphHtml(paragraph);
}

function paragraphHtml(lines: readonly string[]): string {
  return lines.length === 0 ? "" : `<p>${inlineHtml(lines.join("\n"))}</p>\n`;
}

function inlineHtml(text: string): string {
  return escapeHtml(text)
    .split(/(`[^`\n]+`)/)
    .map((piece) =>
      piece.length > 2 && piece.startsWith("`")
        ? `<code>${piece.slice(1, -1)}</code>`
        : piece.replaceAll(/\*\*([^*\n]+)\*\*/g, "<strong>$1</strong>"),
    )
    .join("");
}
