import type { Entry } from "../core/entries.ts";
import type { SessionTree } from "../core/tree.ts";
import type { Branch, Branches } from "./export-branches.ts";
import { branchesOf } from "./export-branches.ts";
import { timeText } from "./export-markdown.ts";
import type { Part, Shown } from "./export-shown.ts";
import { isShown, plain, shown } from "./export-shown.ts";
import { style } from "./html-style.ts";
import { escapeHtml, proseHtml, shortText } from "./html-text.ts";
import type { BlobOf } from "./inline-blobs.ts";
import { noBlobs } from "./inline-blobs.ts";

/** Nothing is fetched and nothing runs, whatever the page is made of. */
const policy =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/** A session as one HTML file: every branch, no script, nothing from elsewhere. */
export function* exportHtml(tree: SessionTree, blobOf: BlobOf = noBlobs): Generator<string> {
  const page = new Page(tree, blobOf);
  yield* page.head();
  yield* page.contents();
  yield '<main id="main">\n';
  for (const branch of page.branches.list) yield* page.branch(branch);
  yield "</main>\n<footer>Exported from Skein.</footer>\n</body>\n</html>\n";
}

class Page {
  readonly branches: Branches;
  readonly #tree: SessionTree;
  readonly #blobOf: BlobOf;
  /** Anchors by number: an id from outside is no part of the page's markup. */
  readonly #anchors = new Map<string, string>();

  constructor(tree: SessionTree, blobOf: BlobOf) {
    this.#tree = tree;
    this.#blobOf = blobOf;
    this.branches = branchesOf(tree);
    for (const { entries } of this.branches.list)
      for (const entry of entries)
        if (isShown(entry)) this.#anchors.set(entry.id, `m${this.#anchors.size + 1}`);
  }

  *head(): Generator<string> {
    const { header, name } = this.#tree;
    const title = escapeHtml(name === null ? "A session" : plain(name));
    yield `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n`;
    yield `<meta http-equiv="Content-Security-Policy" content="${policy}">\n`;
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n';
    yield `<title>${title}</title>\n<style>${style}</style>\n</head>\n<body>\n`;
    yield `<a class="skip" href="#main">To the conversation</a>\n<header>\n<h1 dir="auto">${title}</h1>\n<dl>\n`;
    const begun = header.timestamp === undefined ? "" : timeText(header.timestamp);
    const rows = { Session: header.id, Folder: header.cwd ?? "", Begun: begun };
    for (const [term, value] of Object.entries(rows))
      if (value !== "") yield `<dt>${term}</dt><dd>${escapeHtml(plain(value))}</dd>\n`;
    yield "</dl>\n</header>\n";
  }

  /** What was asked on the active branch, and the other branches. */
  *contents(): Generator<string> {
    const { list } = this.branches;
    const asked = (list[0]?.entries ?? []).flatMap((entry) => this.#prompt(entry) ?? []);
    if (asked.length < 2 && list.length < 2) return;
    yield '<nav aria-label="Contents">\n';
    if (asked.length > 1) {
      yield `<details>\n<summary>What was asked (${asked.length})</summary>\n<ol>\n`;
      for (const { anchor, words } of asked) yield `<li><a href="#${anchor}" dir="auto">${words}</a></li>\n`;
      yield "</ol>\n</details>\n";
    }
    if (list.length > 1) {
      yield "<h2>Branches</h2>\n<ol>\n";
      for (const branch of list)
        yield `<li><a href="#b${branch.number}" dir="auto">${this.#branchName(branch)}</a></li>\n`;
      yield "</ol>\n";
    }
    yield "</nav>\n";
  }

  *branch(branch: Branch): Generator<string> {
    const { number, from, entries } = branch;
    const several = this.branches.list.length > 1;
    const heading = several ? `Branch ${number}${number === 1 ? ", the active one" : ""}` : "Conversation";
    yield `<section aria-labelledby="b${number}">\n<h2 id="b${number}">${heading}</h2>\n`;
    if (number > 1) {
      const back =
        from === null
          ? "It begins at the root."
          : `It leaves from <a href="#${this.#anchors.get(from)}">an earlier message</a>.`;
      yield `<p class="note">${back}</p>\n`;
    } else yield* this.#leaving("");
    for (const entry of entries) {
      const seen = shown(entry, this.#tree, this.#blobOf);
      if (seen === null) continue;
      yield* message(seen, this.#anchors.get(seen.id) ?? "");
      yield* this.#leaving(seen.id);
    }
    yield "</section>\n";
  }

  *#leaving(id: string): Generator<string> {
    const links = (this.branches.leaving.get(id) ?? []).map(
      (number) => `<a href="#b${number}">Branch ${number}</a>`,
    );
    if (links.length > 0) yield `<p class="mark">Leaving here: ${links.join(", ")}</p>\n`;
  }

  #branchName({ number, entries }: Branch): string {
    const first = entries.map((entry) => this.#prompt(entry)).find((each) => each !== null);
    const words = first === undefined ? "" : `: ${first?.words}`;
    return `Branch ${number}${number === 1 ? ", the active one" : ""}${words}`;
  }

  #prompt(entry: Entry): { anchor: string; words: string } | null {
    if (entry.type !== "message" || entry.message.role !== "user") return null;
    const { content } = entry.message;
    const text =
      typeof content === "string"
        ? content
        : content.map((block) => (block.type === "text" ? block.text : "")).join(" ");
    const words = escapeHtml(shortText(plain(text.slice(0, 400)), 90)) || "(no text)";
    return { anchor: this.#anchors.get(entry.id) ?? "", words };
  }
}

function* message(seen: Shown, anchor: string): Generator<string> {
  if (seen.kind === "mark") {
    yield `<p class="mark" id="${anchor}">${escapeHtml(seen.title)}</p>\n`;
    return;
  }
  yield `<article class="${seen.kind}" id="${anchor}">\n<div><h3>${escapeHtml(seen.title)}</h3>${about(seen)}</div>\n`;
  if (seen.hidden) yield "<details>\n<summary>For the model, not for people</summary>\n";
  for (const part of seen.parts) yield* partHtml(part, seen);
  if (seen.parts.length === 0) yield '<p class="note">(nothing)</p>\n';
  if (seen.hidden) yield "</details>\n";
  yield "</article>\n";
}

function about({ label, failed, details, time }: Shown): string {
  const words = [
    ...(label === null ? [] : [`<span class="label">${escapeHtml(label)}</span>`]),
    ...(failed ? ['<strong class="bad">failed</strong>'] : []),
    ...details.map((detail) => `<span>${escapeHtml(detail)}</span>`),
    ...(time === "" ? [] : [`<time datetime="${time}">${timeText(time)}</time>`]),
  ];
  return words.length === 0 ? "" : ` <span class="about">${words.join(" ")}</span>`;
}

function* partHtml(part: Part, seen: Shown): Generator<string> {
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
      yield `<details>\n<summary>Call <b>${escapeHtml(part.name)}</b> ${escapeHtml(shortText(part.json, 80))}</summary>\n${pre(part.json)}</details>\n`;
      return;
    case "output": {
      const what = part.title ?? (seen.failed ? "Output of the failure" : "Output");
      yield `<details>\n<summary><b>${escapeHtml(what)}</b> ${escapeHtml(shortText(part.text, 80))}</summary>\n${pre(part.text)}</details>\n`;
      return;
    }
    case "image":
      yield imageHtml(part.mimeType, part.data);
      return;
    case "note":
      yield `<p class="note">${escapeHtml(part.text)}</p>\n`;
  }
}

function pre(text: string): string {
  return `<pre>\n${escapeHtml(text)}</pre>\n`;
}

/** Pictures of kinds that can be nothing else. */
function imageHtml(mimeType: string, data: string): string {
  const known = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/.test(mimeType) && /^[A-Za-z0-9+/=]+$/.test(data);
  if (!known) return '<p class="note">An image that cannot be shown.</p>\n';
  return `<img alt="An image that was part of the message" src="data:${mimeType};base64,${data}">\n`;
}
