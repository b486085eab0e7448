import type { AssistantMessage, Content, UserMessage } from "../../core/messages.ts";
import { cutText, escapeToLine, fenceText } from "../../core/text.ts";
import type { StepResult, TranscriptMessage } from "../contract.ts";
import type { StepOptions } from "../derive.ts";
import { derive, isAnnotated, isImageBlob, mapMessages, markAnnotated, prependText } from "../derive.ts";

const mark = "[Inter-session message]";
/** Spellings of the marker, without its first letter. */
const spellings = ["nter-session message]", "nter-Session Message]", "NTER-SESSION MESSAGE]"];

/**
 * Step 1: adds a first line with the source session to messages and notes from other sessions, and fences their text so
 * that it cannot imitate an announcement or a system block. Prefixes a group message with its sender. Escapes lines of
 * user text that imitate the first line.
 */
export function annotateInterSessionMessages(
  messages: readonly TranscriptMessage[],
  { record }: Pick<StepOptions, "record">,
): StepResult {
  return mapMessages(messages, record, (message, tell) => {
    if (isAnnotated(message) || message.role === "toolResult") return message;
    const isInterSession = message.provenance?.kind === "inter_session";
    const note = "The name of the source session is added.";
    if (message.role === "assistant") {
      if (!isInterSession) return message;
      tell("annotated", note);
      return addNoteFirstLine(message);
    }
    const safe = escapeImitations(addSender(message));
    if (safe !== message) tell("imitation_escaped", "A line that imitates Skein's marker is escaped.");
    if (!isInterSession) return safe;
    tell("annotated", note);
    return addFirstLine(safe);
  });
}

const maxNameLength = 80;

/**
 * Prefixes a message with its sender's name. The name is reduced to one line so that it cannot imitate another message.
 */
function addSender(message: UserMessage): UserMessage {
  const { content, provenance } = message;
  const name = provenance?.sourcePeerName ?? provenance?.sourcePeer;
  if (name === undefined || provenance?.kind === "inter_session") return message;
  const sender = `${escapeToLine(cutText(name, maxNameLength))}:`;
  return markAnnotated(message, { content: prependText(content, sender, " ") });
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
  // Brackets are rare and fast to find, so most texts are not searched for the spellings.
  return text.includes("[I") || text.includes("[i") ? spellings.reduce(escapeSpelling, text) : text;
}

/** Adds a backslash before each marker that starts a line. The text between markers is read only once. */
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

/**
 * Adds the first line and fences the text. Text that Skein composed is not fenced, because it is either a task or an
 * announcement whose quoted text is already fenced.
 */
function addFirstLine(message: UserMessage): UserMessage {
  const line = firstLine(message);
  const { content, provenance } = message;
  const shown = (text: string) => (provenance?.verbatim === true ? text : fenceText(text));
  const fenced =
    typeof content === "string"
      ? shown(content)
      : content.map((block) =>
          block.type === "text" && !isImageBlob(block) ? { ...block, text: shown(block.text) } : block,
        );
  return markAnnotated(message, { content: prependText(fenced, line, "\n") });
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

/** Quotes a value that could be mistaken for several values. */
function quoteValue(value: string): string {
  const line = escapeToLine(value);
  return /^[^\s"=[\]]+$/.test(line) ? line : JSON.stringify(line);
}
