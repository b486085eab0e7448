import { cutText } from "../../core/text.ts";
import { sections, sectionsIn } from "../../transcript/compaction/sections.ts";
import { textTokens } from "../../transcript/text-tokens.ts";

/** The notes that a compaction asks for, made of the conversation's own lines: every section, within the size wanted. */

const usualCharacters = 4000;
const mostCharacters = 6000;
const nothing = "None.";

/** Whether a prompt is one of `summaryPrompt`. */
export function isSummaryPrompt(text: string): boolean {
  return (
    text.startsWith("<conversation>") &&
    text.includes("\n## Goal\n") &&
    text.includes("Use exactly these headings")
  );
}

export function rehearsedSummary(prompt: string, mostTokens = Number.POSITIVE_INFINITY): string {
  const end = prompt.indexOf("\n</conversation>");
  const conversation = prompt.slice(0, end === -1 ? prompt.length : end).slice("<conversation>\n".length);
  const behind = prompt.slice(conversation.length);
  const [, size] = /At most (\d{1,9}) characters/.exec(behind) ?? [];
  const asks = spokenBy(conversation, "[User]: ");
  const before = notesIn(behind);
  const facts: Readonly<Record<string, readonly string[]>> = {
    goal: [before("goal"), asks[0] ?? ""],
    decisions: [before("decisions")],
    openWork: [spokenBy(conversation, "[Assistant]: ").at(-1) ?? "", before("open work")],
    constraints: [before("constraints")],
    pendingAsks: [asks.at(-1) ?? "", before("pending asks")],
    identifiers: [namesIn(conversation).join(", "), before("exact identifiers")],
    files: [taggedIn(behind, "known-files"), before("files touched")],
  };
  const write = (each: number) =>
    sections.map(({ id, heading }) => `## ${heading}\n${body(facts[id] ?? [], each)}`).join("\n\n");
  const most = Math.min(Number(size ?? usualCharacters), mostCharacters);
  let each = Math.floor(most / sections.length);
  let text = write(each);
  while (each > 0 && (text.length > most || textTokens(text) > mostTokens)) {
    each = Math.floor(each * 0.7);
    text = write(each);
  }
  return text;
}

/** Lines without what would pass for a heading; of several facts each has its share. */
function body(facts: readonly string[], longest: number): string {
  const known = [...new Set(facts.map(plain).filter((fact) => fact !== "" && fact !== nothing))];
  const share = Math.floor(longest / Math.max(1, known.length));
  const lines = known
    .map((fact) => cutText(fact, Math.max(0, share - 4)).trim())
    .filter((line) => line !== "");
  return lines.length === 0 ? nothing : lines.map((line) => `- ${line}`).join("\n");
}

/** On one line: no fact opens a heading, and none a list within the list. */
function plain(text: string): string {
  return text
    .slice(0, mostCharacters)
    .replace(/\s+/g, " ")
    .replace(/^(?:[-#>] ?)+/, "")
    .trim();
}

/** What somebody said, text by text; a text ends where the next begins. */
function spokenBy(conversation: string, mark: string): readonly string[] {
  const texts: string[] = [];
  let open = false;
  for (const line of conversation.split("\n")) {
    const isMark = /^\[[^\]]{1,200}\]: /.test(line);
    if (isMark) open = line.startsWith(mark);
    if (!open) continue;
    if (isMark) texts.push(line.slice(mark.length));
    else if ((texts.at(-1)?.length ?? 0) < mostCharacters) texts.push(`${texts.pop() ?? ""}\n${line}`);
  }
  return texts;
}

/** The notes so far, by heading. */
function notesIn(behind: string): (heading: string) => string {
  const found = sectionsIn(taggedIn(behind, "previous-summary") || taggedIn(behind, "later-summary"));
  return (heading) => found.get(heading)?.trim() ?? "";
}

function taggedIn(text: string, tag: string): string {
  const from = text.indexOf(`<${tag}>\n`);
  const to = text.indexOf(`\n</${tag}>`);
  return from === -1 || to < from ? "" : text.slice(from + tag.length + 3, to);
}

/** Paths, versions, numbers, and names with something other than letters in them. */
function namesIn(conversation: string): readonly string[] {
  const words = conversation.slice(-20_000).match(/[\w./:@-]{3,80}/g) ?? [];
  const names = words.filter((word) => /\d|\w[./:@_]\w/.test(word));
  return [...new Set(names)].slice(-20);
}
