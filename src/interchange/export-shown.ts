import type { Entry, MessageEntry } from "../core/entries.ts";
import { stringifyJson } from "../core/json.ts";
import type { AssistantMessage, Content, Message } from "../core/messages.ts";
import { isRecord } from "../core/shape.ts";
import { escapeUnprintable } from "../core/text.ts";
import type { SessionTree } from "../core/tree.ts";
import type { BlobOf } from "./inline-blobs.ts";
import { inlineBlobs } from "./inline-blobs.ts";

/** What people see of an entry, whatever it is written in. All texts are free of control characters. */

export type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  | { readonly kind: "call"; readonly name: string; readonly id: string; readonly json: string }
  /** To be shown to the letter: results, output of commands, what we do not know. */
  | { readonly kind: "output"; readonly text: string; readonly title: string | null }
  | { readonly kind: "image"; readonly mimeType: string; readonly data: string }
  | { readonly kind: "note"; readonly text: string };

export interface Shown {
  readonly id: string;
  /** `mark`: a line between messages, such as a change of the model. */
  readonly kind: "user" | "assistant" | "tool" | "other" | "summary" | "mark";
  readonly title: string;
  readonly details: readonly string[];
  /** ISO 8601, or empty when the entry has none that can be read. */
  readonly time: string;
  readonly label: string | null;
  readonly failed: boolean;
  /** Said to the model, not to people. */
  readonly hidden: boolean;
  readonly parts: readonly Part[];
}

type Body = Pick<Shown, "kind" | "title"> & Partial<Pick<Shown, "details" | "failed" | "hidden" | "parts">>;

const bookkeeping = new Set<Entry["type"]>(["label", "session_info", "custom", "usage", "leaf"]);

/** Whether people see anything of an entry. */
export function isShown(entry: Entry): boolean {
  return !bookkeeping.has(entry.type);
}

/** `null` for what is not shown. */
export function shown(entry: Entry, tree: SessionTree, blobOf: BlobOf): Shown | null {
  const body = entry.type === "message" ? messageBody(entry, blobOf) : entryBody(entry, blobOf);
  if (body === null) return null;
  const time = Date.parse(entry.timestamp);
  const label = tree.labels.get(entry.id);
  return {
    id: entry.id,
    time: Number.isNaN(time) ? "" : new Date(time).toISOString(),
    label: label === undefined ? null : plain(label),
    details: [],
    failed: false,
    hidden: false,
    parts: [],
    ...body,
    title: plain(body.title),
  };
}

/** Line breaks as one character, colours of terminals gone, what else controls something spelled out. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
  return escapeUnprintable(text.replaceAll("\r\n", "\n").replace(/\u001b\[[0-9;]*m/g, ""));
}

function entryBody(entry: Exclude<Entry, MessageEntry>, blobOf: BlobOf): Body | null {
  switch (entry.type) {
    case "custom_message": {
      const hidden = entry.display === false;
      return {
        kind: "other",
        title: `Note (${entry.customType})`,
        hidden,
        parts: contentParts(entry.content, blobOf),
      };
    }
    case "compaction": {
      const tokens = entry.tokensBefore ? [`${entry.tokensBefore} tokens before`] : [];
      return { kind: "summary", title: "Compaction", details: tokens, parts: texts(entry.summary) };
    }
    case "branch_summary":
      return { kind: "summary", title: "Summary of a branch that was left", parts: texts(entry.summary) };
    case "model_change":
      return { kind: "mark", title: `Model: ${entry.provider}/${entry.modelId}` };
    case "thinking_level_change":
      return { kind: "mark", title: `Thinking: ${entry.thinkingLevel}` };
    case "active_tools_change":
      return { kind: "mark", title: `Tools: ${entry.activeToolNames.join(", ")}` };
    case "context_edit": {
      const done = entry.replacement === null ? "left out of the context" : "replaced in the context";
      return { kind: "mark", title: `An earlier message was ${done}` };
    }
    case "opaque":
      return {
        kind: "mark",
        title: `An entry of type "${String(entry.original.type)}" that cannot be shown`,
      };
    default:
      return null;
  }
}

function messageBody({ message }: MessageEntry, blobOf: BlobOf): Body {
  switch (message.role) {
    case "user":
      return { kind: "user", title: "User", parts: contentParts(message.content, blobOf) };
    case "assistant":
      return {
        kind: "assistant",
        title: "Assistant",
        details: answerDetails(message),
        failed: message.stopReason === "error",
        parts: [...message.content.flatMap(assistantPart), ...endNotes(message)],
      };
    case "toolResult": {
      const failed = message.isError === true;
      const parts = outputParts(message.content, blobOf);
      return { kind: "tool", title: `Result of ${message.toolName ?? "a tool"}`, failed, parts };
    }
    case "bashExecution": {
      const failed = (message.exitCode ?? 0) !== 0;
      const details = message.exitCode === undefined ? [] : [`exit code ${message.exitCode}`];
      const text = plain(`$ ${message.command}\n${message.output}`);
      return {
        kind: "tool",
        title: "Shell command",
        details,
        failed,
        parts: [{ kind: "output", text, title: null }],
      };
    }
    case "custom": {
      const hidden = message.display === false;
      return {
        kind: "other",
        title: `Note (${message.customType})`,
        hidden,
        parts: contentParts(message.content, blobOf),
      };
    }
    case "system":
      return {
        kind: "other",
        title: "System prompt",
        hidden: true,
        parts: contentParts(message.content, blobOf),
      };
    default:
      return {
        kind: "other",
        title: `Role "${String((message as Message).role)}"`,
        parts: [unknownPart(message)],
      };
  }
}

function answerDetails({ model, usage }: AssistantMessage): string[] {
  const tokens = usage?.totalTokens ? [`${usage.totalTokens} tokens`] : [];
  const cost = usage?.cost?.total ? [`$${usage.cost.total.toFixed(4)}`] : [];
  return [...(model ? [plain(model)] : []), ...tokens, ...cost];
}

/** How an answer ended, where that is worth a word. */
function endNotes({ stopReason, errorMessage }: AssistantMessage): Part[] {
  const words: Record<string, string> = {
    error: `The answer ended in an error${errorMessage === undefined ? "." : `: ${plain(errorMessage)}`}`,
    aborted: "The answer was broken off.",
    length: "The answer was cut: it reached the limit of its length.",
  };
  const text = Object.hasOwn(words, stopReason ?? "") ? words[stopReason ?? ""] : undefined;
  return text === undefined ? [] : [{ kind: "note", text }];
}

function assistantPart(block: AssistantMessage["content"][number]): Part[] {
  switch (block.type) {
    case "text":
      return texts(block.text);
    case "thinking": {
      const text =
        block.thinking === "" ? "(not readable: the provider keeps it to itself)" : plain(block.thinking);
      return [{ kind: "thinking", text }];
    }
    case "toolCall":
      return [
        { kind: "call", name: plain(block.name), id: plain(block.id), json: prettyJson(block.arguments) },
      ];
    default:
      return [unknownPart(block)];
  }
}

function contentParts(content: Content, blobOf: BlobOf): Part[] {
  if (typeof content === "string") return texts(content);
  return inlineBlobs(content, blobOf).flatMap((block): Part[] => {
    if (block.type === "text") return texts(block.text);
    return block.type === "image" ? [{ ...block, kind: "image" }] : [unknownPart(block)];
  });
}

function outputParts(content: Content, blobOf: BlobOf): Part[] {
  return contentParts(content, blobOf).map((part) =>
    part.kind === "text" ? { kind: "output", text: part.text, title: null } : part,
  );
}

function unknownPart(value: unknown): Part {
  const type = isRecord(value) ? String(value.type ?? value.role) : "unknown";
  return { kind: "output", text: prettyJson(value), title: plain(type) };
}

function texts(text: string): Part[] {
  return text.trim() === "" ? [] : [{ kind: "text", text: plain(text) }];
}

function prettyJson(value: unknown): string {
  try {
    return plain(JSON.stringify(value, null, 2));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return plain(stringifyJson(value));
  }
}
