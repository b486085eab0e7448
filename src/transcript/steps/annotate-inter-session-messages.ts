import type { AssistantMessage, Content, UserMessage } from "../../core/messages.ts";
import { cutText, escapeToLine, fenceText } from "../../core/text.ts";
import type { Change, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { derive, isAnnotated, markAnnotated } from "../derive.ts";

const mark = "[Inter-session message]";
/** Its spellings without the first letter. */
const spellings = ["nter-session message]", "nter-Session Message]", "NTER-SESSION MESSAGE]"];

/**
 * Step 1: a message or note of another session says so in its first line, once, and its text is fenced so that it cannot pass
 * for an announcement or a block of the system. A message in a group begins with the name of its sender. A line of any
 * user's text that reads like our first line gets a backslash.
 */
export function annotateInterSessionMessages(
  messages: readonly TranscriptMessage[],
  { record }: { readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  let changed = false;
  const after = messages.map((message) => {
    if (isAnnotated(message)) return message;
    if (message.role === "assistant") {
      if (message.provenance?.kind !== "inter_session") return message;
      changes.push(record("annotated", "It says which session it comes from.", message));
      changed = true;
      return addNoteFirstLine(message);
    }
    if (message.role !== "user") return message;
    const safe = escapeImitations(addSender(message));
    if (safe !== message)
      changes.push(record("imitation_escaped", "A line that imitates ours is escaped.", message));
    const done = message.provenance?.kind === "inter_session" ? addFirstLine(safe) : safe;
    if (done !== safe) changes.push(record("annotated", "It says which session it comes from.", message));
    if (done !== message) changed = true;
    return done;
  });
  return { messages: changed ? after : messages, changes };
}

const maxNameLength = 80;

/** Who of a group speaks, before the text. A name is one line, so that it cannot imitate another message. */
function addSender(message: UserMessage): UserMessage {
  const { content, provenance } = message;
  const name = provenance?.sourcePeerName ?? provenance?.sourcePeer;
  if (name === undefined || provenance?.kind === "inter_session") return message;
  const sender = `${escapeToLine(cutText(name, maxNameLength))}: `;
  if (typeof content === "string") return markAnnotated(message, { content: sender + content });
  const [first, ...rest] = content;
  const blocks =
    first?.type === "text"
      ? [{ ...first, text: sender + first.text }, ...rest]
      : [{ type: "text" as const, text: sender.trim() }, ...content];
  return markAnnotated(message, { content: blocks });
}

function addNoteFirstLine(message: AssistantMessage): AssistantMessage {
  const text = fenceText(
    message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n"),
  );
  return markAnnotated(message, { content: [{ type: "text", text: `${firstLine(message)}\n${text}` }] });
}

function escapeImitations(message: UserMessage): UserMessage {
  const { content } = message;
  if (typeof content === "string") {
    const text = escapeMarks(content);
    return text === content ? message : derive(message, { content: text });
  }
  const imitates = (block: Exclude<Content, string>[number]) =>
    block.type === "text" && escapeMarks(block.text) !== block.text;
  if (!content.some(imitates)) return message;
  const blocks = content.map((block) =>
    block.type === "text" ? { ...block, text: escapeMarks(block.text) } : block,
  );
  return derive(message, { content: blocks });
}

function escapeMarks(text: string): string {
  // A bracket is rare, and looking for one is fast.
  return text.includes("[I") || text.includes("[i") ? spellings.reduce(escapeSpelling, text) : text;
}

/** A backslash before each that begins a line. Never looks twice at what lies between two of them. */
function escapeSpelling(text: string, spelling: string): string {
  let found = text.indexOf(spelling);
  if (found === -1) return text;
  const pieces: string[] = [];
  let from = 0;
  for (; found !== -1; found = text.indexOf(spelling, found + 1)) {
    const opening = found - 2;
    const isMark = text[opening] === "[" && (text[found - 1] === "I" || text[found - 1] === "i");
    if (!isMark || !beginsLine(text, opening, from)) continue;
    pieces.push(text.slice(from, opening), "\\");
    from = opening;
  }
  return pieces.length === 0 ? text : `${pieces.join("")}${text.slice(from)}`;
}

function beginsLine(text: string, place: number, from: number): boolean {
  let at = place - 1;
  while (at >= from && text[at] !== "\n" && /\s/.test(text[at] ?? "")) at--;
  return at < from ? from === 0 : text[at] === "\n";
}

/** What Skein itself composed stays as it is: a task, or an announcement, which fences the words of other sessions itself. */
function addFirstLine(message: UserMessage): UserMessage {
  const line = firstLine(message);
  const { content, provenance } = message;
  const shown = (text: string) => (provenance?.verbatim === true ? text : fenceText(text));
  if (typeof content === "string") return markAnnotated(message, { content: `${line}\n${shown(content)}` });
  const blocks = content.map((block) =>
    block.type === "text" && block.skein?.blob?.was !== "image"
      ? { ...block, text: shown(block.text) }
      : block,
  );
  const [first, ...rest] = blocks;
  if (first?.type !== "text")
    return markAnnotated(message, { content: [{ type: "text", text: line }, ...blocks] });
  return markAnnotated(message, { content: [{ ...first, text: `${line}\n${first.text}` }, ...rest] });
}

function firstLine({ provenance }: Pick<UserMessage, "provenance">): string {
  const parts = [
    ["sourceSession", provenance?.sourceSessionKey],
    ["sourceChannel", provenance?.sourceChannel],
    ["sourceTool", provenance?.sourceTool],
  ] as const;
  const known = parts.flatMap(([name, value]) =>
    typeof value === "string" ? [`${name}=${quoteValue(value)}`] : [],
  );
  return [mark, ...known].join(" ");
}

/** A value that could be read as more than one is quoted. */
function quoteValue(value: string): string {
  const line = escapeToLine(value);
  return /^[^\s"=[\]]+$/.test(line) ? line : JSON.stringify(line);
}
