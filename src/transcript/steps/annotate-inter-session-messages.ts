import type { Content, UserMessage } from "../../core/messages.ts";
import { escapeToLine } from "../../core/text.ts";
import type { Change, StepResult, TranscriptMessage } from "../contract.ts";
import type { Recorder } from "../derive.ts";
import { annotated, derive, isAnnotated } from "../derive.ts";

const mark = "[Inter-session message]";
/** What tells in one fast look that a text has nothing of the kind. */
const telling = "nter-session message]";
const imitation = /^([^\S\n]*)(\[[Ii]nter-session message\])/gm;

/**
 * Step 1: a message of another session says so in its first line, once. A line of any user's text that reads like
 * one of ours gets a backslash.
 */
export function annotateInterSessionMessages(
  messages: readonly TranscriptMessage[],
  { record }: { readonly record: Recorder },
): StepResult {
  const changes: Change[] = [];
  let changed = false;
  const after = messages.map((message) => {
    if (message.role !== "user" || isAnnotated(message)) return message;
    const safe = withoutImitation(message);
    if (safe !== message)
      changes.push(record("imitation_escaped", "A line that imitates ours is escaped.", message));
    const done = message.provenance?.kind === "inter_session" ? withFirstLine(safe) : safe;
    if (done !== safe) changes.push(record("annotated", "It says which session it comes from.", message));
    if (done !== message) changed = true;
    return done;
  });
  return { messages: changed ? after : messages, changes };
}

function withoutImitation(message: UserMessage): UserMessage {
  const { content } = message;
  if (typeof content === "string") {
    const text = escaped(content);
    return text === content ? message : derive(message, { content: text });
  }
  const imitates = (block: Exclude<Content, string>[number]) =>
    block.type === "text" && escaped(block.text) !== block.text;
  if (!content.some(imitates)) return message;
  const blocks = content.map((block) =>
    block.type === "text" ? { ...block, text: escaped(block.text) } : block,
  );
  return derive(message, { content: blocks });
}

function escaped(text: string): string {
  return text.includes(telling) ? text.replace(imitation, "$1\\$2") : text;
}

function withFirstLine(message: UserMessage): UserMessage {
  const line = firstLine(message);
  const { content } = message;
  if (typeof content === "string") return annotated(message, { content: `${line}\n${content}` });
  const [first, ...rest] = content;
  if (first?.type !== "text")
    return annotated(message, { content: [{ type: "text", text: line }, ...content] });
  return annotated(message, { content: [{ ...first, text: `${line}\n${first.text}` }, ...rest] });
}

function firstLine({ provenance }: UserMessage): string {
  const parts = [
    ["sourceSession", provenance?.sourceSessionKey],
    ["sourceChannel", provenance?.sourceChannel],
    ["sourceTool", provenance?.sourceTool],
  ] as const;
  const known = parts.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoted(value)}`]));
  return [mark, ...known].join(" ");
}

/** A value that could be read as more than one is quoted. */
function quoted(value: string): string {
  const line = escapeToLine(value);
  return /^[^\s"=[\]]+$/.test(line) ? line : JSON.stringify(line);
}
