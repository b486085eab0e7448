import { cutText } from "../../core/text.ts";
import { readSections, sections } from "../../transcript/compaction/check-summary.ts";
import { textTokens } from "../../transcript/text-tokens.ts";

/** The summary that a compaction asks for, made of lines of the conversation: every section, within the requested size. */

const defaultCharacters = 4000;
const maxCharacters = 6000;
const nothing = "None.";

/** Whether a prompt is one of `summaryPrompt`. */
export function isSummaryPrompt(text: string): boolean {
  return (
    text.startsWith("<conversation>") &&
    text.includes("\n## Goal\n") &&
    text.includes("Use exactly these headings")
  );
}

export function rehearsedSummary(prompt: string, maxTokens = Number.POSITIVE_INFINITY): string {
  const end = prompt.indexOf("\n</conversation>");
  const conversation = prompt.slice(0, end === -1 ? prompt.length : end).slice("<conversation>\n".length);
  const after = prompt.slice(conversation.length);
  const [, size] = /At most (\d{1,9}) characters/.exec(after) ?? [];
  const asks = messagesOf(conversation, "[User]: ");
  const before = readNotes(after);
  const facts: Readonly<Record<string, readonly string[]>> = {
    goal: [before("goal"), asks[0] ?? ""],
    decisions: [before("decisions")],
    openWork: [messagesOf(conversation, "[Assistant]: ").at(-1) ?? "", before("open work")],
    constraints: [before("constraints")],
    pendingAsks: [asks.at(-1) ?? "", before("pending asks")],
    identifiers: [findIdentifiers(conversation).join(", "), before("exact identifiers")],
    files: [readTag(after, "known-files"), before("files touched")],
  };
  const write = (each: number) =>
    sections.map(({ id, heading }) => `## ${heading}\n${writeFacts(facts[id] ?? [], each)}`).join("\n\n");
  const most = Math.min(Number(size ?? defaultCharacters), maxCharacters);
  let each = Math.floor(most / sections.length);
  let text = write(each);
  while (each > 0 && (text.length > most || textTokens(text) > maxTokens)) {
    each = Math.floor(each * 0.7);
    text = write(each);
  }
  return text;
}

/** A list within `longest` characters, which the facts share evenly. */
function writeFacts(facts: readonly string[], longest: number): string {
  const known = [...new Set(facts.map(toLine).filter((fact) => fact !== "" && fact !== nothing))];
  const share = Math.floor(longest / Math.max(1, known.length));
  const lines = known
    .map((fact) => cutText(fact, Math.max(0, share - 4)).trim())
    .filter((line) => line !== "");
  return lines.length === 0 ? nothing : lines.map((line) => `- ${line}`).join("\n");
}

/** On one line, without marks that would start a heading or a nested list. */
function toLine(text: string): string {
  return text
    .slice(0, maxCharacters)
    .replace(/\s+/g, " ")
    .replace(/^(?:[-#>] ?)+/, "")
    .trim();
}

/** The messages with this mark; a message ends where the next begins. */
function messagesOf(conversation: string, mark: string): readonly string[] {
  const texts: string[] = [];
  let isOpen = false;
  for (const line of conversation.split("\n")) {
    const isMark = /^\[[^\]]{1,200}\]: /.test(line);
    if (isMark) isOpen = line.startsWith(mark);
    if (!isOpen) continue;
    if (isMark) texts.push(line.slice(mark.length));
    else if ((texts.at(-1)?.length ?? 0) < maxCharacters) texts.push(`${texts.pop() ?? ""}\n${line}`);
  }
  return texts;
}

/** The sections of the previous summary, by heading. */
function readNotes(after: string): (heading: string) => string {
  const found = readSections(readTag(after, "previous-summary") || readTag(after, "later-summary"));
  return (heading) => found.get(heading)?.trim() ?? "";
}

function readTag(text: string, tag: string): string {
  const from = text.indexOf(`<${tag}>\n`);
  const to = text.indexOf(`\n</${tag}>`);
  return from === -1 || to < from ? "" : text.slice(from + tag.length + 3, to);
}

/** Paths, versions, numbers, and other words with more than letters. */
function findIdentifiers(conversation: string): readonly string[] {
  const words = conversation.slice(-20_000).match(/[\w./:@-]{3,80}/g) ?? [];
  const names = words.filter((word) => /\d|\w[./:@_]\w/.test(word));
  return [...new Set(names)].slice(-20);
}
