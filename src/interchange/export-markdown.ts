import type { Entry } from "../core/entries.ts";
import type { SessionTree } from "../core/tree.ts";
import type { Branch, Branches } from "./export-branches.ts";
import { branchesOf } from "./export-branches.ts";
import type { Part, Shown } from "./export-shown.ts";
import { plain, shown } from "./export-shown.ts";
import type { BlobOf } from "./inline-blobs.ts";
import { noBlobs } from "./inline-blobs.ts";
import { code, fenced, inLine, quoted } from "./markdown-text.ts";

export interface MarkdownOptions {
  /** `active`, by default: the branch that the session stands on. `all`: each branch under a heading of its own. */
  readonly branches?: "active" | "all";
}

/** A session to read, in Markdown. What somebody said is quoted, so that it cannot pass for a part of the page. */
export function* exportMarkdown(
  tree: SessionTree,
  blobOf: BlobOf = noBlobs,
  options: MarkdownOptions = {},
): Generator<string> {
  const show = (entry: Entry) => shown(entry, tree, blobOf);
  const branches = branchesOf(tree);
  yield* head(tree, branches);
  const all = options.branches === "all";
  for (const branch of all ? branches.list : branches.list.slice(0, 1)) {
    if (all) yield branchHeading(branch, tree);
    for (const number of branch.number === 1 ? (branches.leaving.get("") ?? []) : [])
      yield leaves(number, all);
    for (const entry of branch.entries) {
      const seen = show(entry);
      if (seen === null) continue;
      yield* message(seen);
      for (const number of branches.leaving.get(entry.id) ?? []) yield leaves(number, all);
    }
  }
}

function* head(tree: SessionTree, { list }: Branches): Generator<string> {
  const { header } = tree;
  yield `# ${inLine(tree.name === null ? "A session" : plain(tree.name))}\n\n`;
  yield `- Session: ${code(plain(header.id))}\n`;
  if (header.cwd) yield `- Folder: ${code(plain(header.cwd))}\n`;
  if (header.timestamp) yield `- Begun: ${inLine(plain(timeText(header.timestamp)))}\n`;
  yield `- Branches: ${list.length}\n\n`;
}

function branchHeading({ number, from }: Branch, tree: SessionTree): string {
  if (number === 1) return "## Branch 1, the active one\n\n";
  if (from === null) return `## Branch ${number}\n\n*It begins at the root.*\n\n`;
  const time = inLine(plain(timeText(tree.entry(from)?.timestamp ?? "")));
  return `## Branch ${number}\n\n*It leaves from the entry of ${time}, ${code(plain(from))}.*\n\n`;
}

function leaves(number: number, all: boolean): string {
  return all ? `*Branch ${number} leaves here.*\n\n` : "*Another branch leaves here.*\n\n";
}

function* message(seen: Shown): Generator<string> {
  if (seen.kind === "mark") {
    yield `*${inLine(seen.title)}*\n\n`;
    return;
  }
  const about = [...seen.details, ...(seen.failed ? ["failed"] : []), timeText(seen.time)];
  const words = [seen.title, ...about].filter((word) => word !== "").map(inLine);
  yield `### ${words.join(" · ")}\n\n`;
  if (seen.label !== null) yield `**Label:** ${inLine(seen.label)}\n\n`;
  if (seen.hidden) yield "<details>\n<summary>For the model, not for people</summary>\n\n";
  for (const part of seen.parts) yield partText(part);
  if (seen.parts.length === 0) yield "*(nothing)*\n\n";
  if (seen.hidden) yield "</details>\n\n";
}

function partText(part: Part): string {
  switch (part.kind) {
    case "text":
      return quoted(part.text);
    case "thinking":
      return `<details>\n<summary>Thinking</summary>\n\n${quoted(part.text)}</details>\n\n`;
    case "call":
      return `**Call** ${code(part.name)} (${code(part.id)})\n\n${fenced(part.json, "json")}`;
    case "output":
      return `${part.title === null ? "" : `**${inLine(part.title)}**\n\n`}${fenced(part.text, "")}`;
    case "image":
      return imageText(part.mimeType, part.data);
    case "note":
      return `*${inLine(part.text)}*\n\n`;
  }
}

function imageText(mimeType: string, data: string): string {
  const safe = /^image\/[\w.+-]+$/.test(mimeType) && /^[A-Za-z0-9+/=]*$/.test(data);
  return safe ? `![image](data:${mimeType};base64,${data})\n\n` : "*An image that cannot be shown.*\n\n";
}

/** To the second, in UTC, whatever the machine's own time. */
export function timeText(iso: string): string {
  const match = /^(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(iso);
  return match === null ? iso : `${match[1]} ${match[2]} UTC`;
}
