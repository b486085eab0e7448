import type { Entry, MessageEntry } from "../core/entries.ts";
import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import type { AssistantMessage, Content, Message } from "../core/messages.ts";
import { escapeUnprintable } from "../core/text.ts";
import type { SessionTree } from "../core/tree.ts";
import { objectField, textField } from "./json-lines.ts";

/** A session as shown in HTML and Markdown exports, without control characters. */

export type ViewPart =
  | { readonly kind: "text" | "thinking" | "note"; readonly text: string }
  | { readonly kind: "call"; readonly name: string; readonly id: string; readonly json: string }
  /** Shown verbatim: tool results, command output, unknown blocks. */
  | { readonly kind: "output"; readonly text: string; readonly title: string | null }
  | { readonly kind: "image"; readonly mimeType: string; readonly data: string };

export interface EntryView {
  readonly id: string;
  /** `mark`: a line between messages, such as a model change. */
  readonly kind: "user" | "assistant" | "tool" | "other" | "summary" | "mark";
  readonly title: string;
  readonly details: readonly string[];
  /** ISO 8601. Empty if the entry has no readable time. */
  readonly time: string;
  readonly label: string | null;
  readonly isFailed: boolean;
  /** `true` if it is sent to the model but not displayed. */
  readonly isHidden: boolean;
  readonly parts: readonly ViewPart[];
}

type Body = Pick<EntryView, "kind" | "title"> & Partial<EntryView>;

const bookkeeping = new Set<Entry["type"]>(["label", "session_info", "custom", "usage", "leaf"]);

export function isShown(entry: Entry): boolean {
  return !bookkeeping.has(entry.type);
}

/** Returns `null` for entries that are not shown. */
export function viewEntry(entry: Entry, tree: SessionTree, readBlob: ReadBlob): EntryView | null {
  const body = entry.type === "message" ? viewMessage(entry.message, readBlob) : viewOther(entry, readBlob);
  if (body === null) return null;
  const time = Date.parse(entry.timestamp);
  const label = tree.labels.get(entry.id);
  return {
    id: entry.id,
    time: Number.isNaN(time) ? "" : new Date(time).toISOString(),
    label: label === undefined ? null : toPlainText(label),
    details: [],
    isFailed: false,
    isHidden: false,
    parts: [],
    ...body,
    title: toPlainText(body.title),
  };
}

function viewOther(entry: Exclude<Entry, MessageEntry>, readBlob: ReadBlob): Body | null {
  switch (entry.type) {
    case "custom_message":
      return viewNote(entry, readBlob);
    case "compaction": {
      const details = entry.tokensBefore ? [`${entry.tokensBefore} tokens before`] : [];
      return { kind: "summary", title: "Compaction", details, parts: textParts(entry.summary) };
    }
    case "branch_summary":
      return { kind: "summary", title: "Summary of an abandoned branch", parts: textParts(entry.summary) };
    case "model_change":
      return { kind: "mark", title: `Model: ${entry.provider}/${entry.modelId}` };
    case "thinking_level_change":
      return { kind: "mark", title: `Thinking: ${entry.thinkingLevel}` };
    case "active_tools_change":
      return { kind: "mark", title: `Tools: ${entry.activeToolNames.join(", ")}` };
    case "context_edit": {
      const action = entry.replacement === null ? "removed from the context" : "replaced in the context";
      return { kind: "mark", title: `An earlier message was ${action}` };
    }
    case "opaque": {
      const type = String(entry.original.type);
      return { kind: "mark", title: `An entry of type "${type}" that cannot be shown` };
    }
    default:
      return null;
  }
}

function viewMessage(message: Message, readBlob: ReadBlob): Body {
  switch (message.role) {
    case "user":
      return { kind: "user", title: "User", parts: contentParts(message.content, readBlob) };
    case "assistant":
      return {
        kind: "assistant",
        title: "Assistant",
        details: answerDetails(message),
        isFailed: message.stopReason === "error",
        parts: [...message.content.flatMap(assistantParts), ...stopNotes(message)],
      };
    case "toolResult": {
      const title = `Result of ${message.toolName ?? "a tool"}`;
      const parts = contentParts(message.content, readBlob).map((part) =>
        part.kind === "text" ? outputPart(part.text) : part,
      );
      return { kind: "tool", title, isFailed: message.isError === true, parts };
    }
    case "bashExecution": {
      const { command, output, exitCode } = message;
      const details = exitCode === undefined ? [] : [`exit code ${exitCode}`];
      const parts = [outputPart(toPlainText(`$ ${command}\n${output}`))];
      return { kind: "tool", title: "Shell command", details, isFailed: (exitCode ?? 0) !== 0, parts };
    }
    case "custom":
      return viewNote(message, readBlob);
    case "system": {
      const parts = contentParts(message.content, readBlob);
      return { kind: "other", title: "System prompt", isHidden: true, parts };
    }
    default: {
      const title = `Role "${String((message as Message).role)}"`;
      return { kind: "other", title, parts: [unknownPart(message)] };
    }
  }
}

function viewNote(
  note: { readonly customType: string; readonly display?: boolean; readonly content: Content },
  readBlob: ReadBlob,
): Body {
  const parts = contentParts(note.content, readBlob);
  return { kind: "other", title: `Note (${note.customType})`, isHidden: note.display === false, parts };
}

function answerDetails({ model, usage }: AssistantMessage): string[] {
  const tokens = usage?.totalTokens ? [`${usage.totalTokens} tokens`] : [];
  const cost = usage?.cost?.total ? [`$${usage.cost.total.toFixed(4)}`] : [];
  return [...(model ? [toPlainText(model)] : []), ...tokens, ...cost];
}

function stopNotes({ stopReason, errorMessage }: AssistantMessage): ViewPart[] {
  const note = (text: string): ViewPart[] => [{ kind: "note", text }];
  if (stopReason === "aborted") return note("The answer was aborted.");
  if (stopReason === "length") return note("The answer was truncated at the length limit.");
  if (stopReason !== "error") return [];
  const reason = errorMessage === undefined ? "." : `: ${toPlainText(errorMessage)}`;
  return note(`The answer ended in an error${reason}`);
}

function assistantParts(block: AssistantMessage["content"][number]): ViewPart[] {
  switch (block.type) {
    case "text":
      return textParts(block.text);
    case "thinking": {
      const text = block.thinking === "" ? "(encrypted by the provider)" : toPlainText(block.thinking);
      return [{ kind: "thinking", text }];
    }
    case "toolCall": {
      const [name, id] = [toPlainText(block.name), toPlainText(block.id)];
      return [{ kind: "call", name, id, json: prettyJson(block.arguments) }];
    }
    default:
      return [unknownPart(block)];
  }
}

function contentParts(content: Content, readBlob: ReadBlob): ViewPart[] {
  if (typeof content === "string") return textParts(content);
  return inlineBlobs(content, readBlob).flatMap((block): ViewPart[] => {
    if (block.type === "text") return textParts(block.text);
    return block.type === "image" ? [{ ...block, kind: "image" }] : [unknownPart(block)];
  });
}

function unknownPart(value: unknown): ViewPart {
  const type = isRecord(value) ? String(value.type ?? value.role) : "unknown";
  return outputPart(prettyJson(value), toPlainText(type));
}

function outputPart(text: string, title: string | null = null): ViewPart {
  return { kind: "output", text, title };
}

function textParts(text: string): ViewPart[] {
  return text.trim() === "" ? [] : [{ kind: "text", text: toPlainText(text) }];
}

/** `JSON.stringify` overflows the stack on deeply nested values. */
function prettyJson(value: unknown): string {
  try {
    return toPlainText(JSON.stringify(value, null, 2));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return toPlainText(stringifyJson(value));
  }
}

/** Normalizes line breaks, removes terminal colors, and escapes other control characters. */
export function toPlainText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches escape sequences
  return escapeUnprintable(text.replaceAll("\r\n", "\n").replace(/\u001b\[[0-9;]*m/g, ""));
}

/** Formats a time in UTC, to the second. */
export function formatTime(iso: string): string {
  const match = /^(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(iso);
  return match === null ? iso : `${match[1]} ${match[2]} UTC`;
}

/**
 * Returns the line that closes the Markdown code block opened at `start`, or the number of lines if none does. Returns
 * `null` if no block opens there with at most `maxIndent` spaces.
 */
export function endOfCodeBlock(lines: readonly string[], start: number, maxIndent: number): number | null {
  const [, indent = "", fence = ""] = /^( *)(`{3,}(?=[^`]*$)|~{3,})/.exec(lines[start] ?? "") ?? [];
  if (fence === "" || indent.length > maxIndent) return null;
  const isClosing = (line: string) => {
    const [, run = ""] = /^ {0,3}(`+|~+)[ \t]*$/.exec(line) ?? [];
    return run.length >= fence.length && run[0] === fence[0];
  };
  let end = start + 1;
  while (end < lines.length && !isClosing(lines[end] ?? "")) end += 1;
  return end;
}

export interface Branch {
  /** The active branch has number 1. */
  readonly number: number;
  /** The shown entry that it starts after, or `null` if it starts at the root. */
  readonly from: string | null;
  readonly entries: readonly Entry[];
}

export interface Branches {
  readonly list: readonly Branch[];
  /** The numbers of the other branches that start after an entry. `""` represents the root. */
  readonly startingAt: ReadonlyMap<string, readonly number[]>;
}

/**
 * Lists the active branch, followed by the entries that the other branches add, in file order. Each entry appears in
 * exactly one branch. At a fork, a branch follows the latest child. Branches that contain only bookkeeping entries are
 * omitted.
 */
export function listBranches(tree: SessionTree): Branches {
  const covered = new Set<string>();
  const list: Branch[] = [];
  const startingAt = new Map<string, number[]>();
  const add = (entries: readonly Entry[]) => {
    for (const { id } of entries) covered.add(id);
    const [first] = entries;
    if (list.length > 0 && !entries.some(isShown)) return;
    const from = first === undefined ? null : shownAncestor(tree, first);
    const number = list.length + 1;
    list.push({ number, from, entries });
    if (number === 1) return;
    const siblings = startingAt.get(from ?? "");
    if (siblings === undefined) startingAt.set(from ?? "", [number]);
    else siblings.push(number);
  };
  add(tree.path());
  for (const entry of tree.entries()) if (!covered.has(entry.id)) add(latestPath(tree, entry, covered));
  return { list, startingAt };
}

function latestPath(tree: SessionTree, first: Entry, covered: ReadonlySet<string>): Entry[] {
  const entries: Entry[] = [];
  for (let entry: Entry | undefined = first; entry !== undefined; ) {
    entries.push(entry);
    entry = tree.children(entry.id).findLast(({ id }) => !covered.has(id));
  }
  return entries;
}

function shownAncestor(tree: SessionTree, entry: Entry): string | null {
  let above = tree.parentOf(entry.id);
  while (above !== null && !isShown(above)) above = tree.parentOf(above.id);
  return above?.id ?? null;
}

/** Returns a blob's bytes, or `null` if it is missing. */
export type ReadBlob = (sha256: string) => Uint8Array | null;

export const noBlobs: ReadBlob = () => null;

/**
 * Replaces blob references with their content. If a blob is missing, its reference is kept. Unchanged content is
 * returned as is.
 */
export function inlineBlobs<C extends Content | readonly unknown[]>(content: C, readBlob: ReadBlob): C {
  if (!Array.isArray(content)) return content;
  const inlined = content.map((block) => (isRecord(block) ? inlineBlob(block, readBlob) : block));
  return inlined.some((block, index) => block !== content[index]) ? (inlined as unknown as C) : content;
}

function inlineBlob(block: Readonly<Record<string, unknown>>, readBlob: ReadBlob): unknown {
  const blob = objectField(objectField(block, "skein") ?? {}, "blob") ?? {};
  const sha256 = textField(blob, "sha256");
  const bytes = sha256 === null ? null : readBlob(sha256);
  if (bytes === null) return block;
  if (blob.was === "image") {
    const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
    return { type: "image", data, mimeType: textField(blob, "mimeType") ?? "application/octet-stream" };
  }
  const { skein: _skein, ...rest } = block;
  return { ...rest, type: "text", text: new TextDecoder().decode(bytes) };
}
