import { copiedFrom } from "./entries.ts";
import { isRecord } from "./is-record.ts";
import { escapeToLine } from "./text.ts";

/**
 * A tombstone is what remains of a redacted entry: its position in the tree, its role and the pairing of calls and
 * results.
 */

export const redactedText = "[redacted]";

/** Replaces a damaged line that contained all or part of a redacted entry. */
export const redactedDamage = '{"redacted":true,"note":"a damaged line that held a redacted entry"';

type Line = Readonly<Record<string, unknown>>;

const placeFields = ["type", "id", "parentId", "timestamp"];
/** Fields that refer to other entries or describe an entry, but contain no content. */
const structure: Readonly<Record<string, readonly string[]>> = {
  model_change: ["provider", "modelId"],
  thinking_level_change: ["thinkingLevel"],
  compaction: ["firstKeptEntryId", "firstKeptEntryIndex", "tokensBefore"],
  branch_summary: ["fromId"],
  custom: ["customType"],
  custom_message: ["customType", "display"],
  label: ["targetId"],
  leaf: ["targetId"],
  context_edit: ["targetId"],
};
const messageFields = [
  "role",
  "timestamp",
  "api",
  "provider",
  "model",
  "usage",
  "stopReason",
  "toolCallId",
  "toolName",
  "isError",
  "customType",
  "display",
  "exitCode",
  "cancelled",
  "truncated",
  "excludeFromContext",
];

/** Returns the line without its content and with the time of the redaction. */
export function tombstoneOf(line: Line, time: number): Line {
  const type = String(line.type);
  const kept = pick(line, [...placeFields, ...(structure[type] ?? [])]);
  const copyOf = copiedFrom(line);
  const skein = { ...(copyOf === null ? {} : { copyOf }), redacted: new Date(time).toISOString() };
  return { ...kept, ...contentsOf(type, line), skein };
}

export function isTombstone(line: Line): boolean {
  return isRecord(line.skein) && typeof line.skein.redacted === "string";
}

function contentsOf(type: string, line: Line): Line {
  switch (type) {
    case "message":
      return { message: isRecord(line.message) ? redactMessage(line.message) : {} };
    case "compaction":
    case "branch_summary":
      return { summary: redactedText };
    case "custom_message":
      return { content: redactedText };
    case "context_edit":
      return { replacement: { content: redactedText } };
    case "active_tools_change":
      return { activeToolNames: [] };
    default:
      return {};
  }
}

/** Returns a message without its content. Its role and the calls that have results are kept. */
export function redactMessage(message: Line): Line {
  const kept = pick(message, messageFields);
  if (message.role === "bashExecution") return { ...kept, command: redactedText, output: redactedText };
  const text = { type: "text", text: redactedText };
  const calls = Array.isArray(message.content) ? message.content.filter(isCall).map(emptyCall) : [];
  return { ...kept, content: [text, ...calls] };
}

function isCall(block: unknown): block is Line {
  return isRecord(block) && block.type === "toolCall";
}

/** Keeps the call's ID because a result must still match its call. */
function emptyCall(call: Line): Line {
  return { ...pick(call, ["type", "id", "name"]), arguments: {} };
}

function pick(line: Line, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    fields.filter((field) => line[field] !== undefined).map((field) => [field, line[field]]),
  );
}

/** Shorter strings are too common to conclude that one was copied from another. */
const minQuoteLength = 24;
/** Names are short and are derived from the beginning of a message. */
const minNameLength = 8;

/** The texts of redacted entries, used to recognize strings elsewhere that repeat them. */
export class RemovedTexts {
  readonly #texts: readonly string[];

  constructor(texts: Iterable<string>) {
    this.#texts = [...new Set([...texts].map((text) => text.trim()))].filter((text) => text !== "");
  }

  /** The texts that are long enough to search for inside other strings. */
  get quotable(): readonly string[] {
    return this.#texts.filter((text) => text.length >= minQuoteLength);
  }

  /** Whether a string equals one of the texts, contains one or is part of one. */
  isRepeatedBy(value: string): boolean {
    return overlap(this.#texts, value.trim(), minQuoteLength);
  }

  /** Whether a name was derived from one of the texts. */
  isNamedBy(name: string): boolean {
    return overlap([...this.#texts, ...this.#texts.map(escapeToLine)], name.trim(), minNameLength);
  }
}

function overlap(texts: readonly string[], value: string, minLength: number): boolean {
  return texts.some((text) => {
    if (text === value) return true;
    if (Math.min(text.length, value.length) < minLength) return false;
    return value.includes(text) || text.includes(value);
  });
}
