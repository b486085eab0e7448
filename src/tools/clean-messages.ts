import { mapStrings } from "../access/redaction/map-strings.ts";
import type { Redactor } from "../access/redaction/redactor.ts";
import { isRecord } from "../core/is-record.ts";
import { stringifyJson } from "../core/json.ts";
import { isBinary } from "../core/messages.ts";
import type { Steps } from "../core/slices.ts";
import { atOnce } from "../core/slices.ts";
import { cutText } from "../core/text.ts";
import type { ShownEntry } from "../sessions/history.ts";
import { messageOf } from "../sessions/history.ts";

const toolRoles = new Set(["toolResult", "tool"]);
const toolBlocks = new Set(["toolCall", "toolResult", "tool_use", "tool_result"]);

type Fields = Readonly<Record<string, unknown>>;

function isToolBlock(block: unknown): boolean {
  return isRecord(block) && typeof block.type === "string" && toolBlocks.has(block.type);
}

/** Whether a message is a tool result or an answer that contains only tool calls. */
export function isToolMessage(message: Fields): boolean {
  const { role, content, errorMessage } = message;
  if (typeof role === "string" && toolRoles.has(role)) return true;
  if (!Array.isArray(content) || errorMessage !== undefined || !content.some(isToolBlock)) return false;
  return content.every((block) => isToolBlock(block) || isBlank(block));
}

/** Whether a block is text or thinking without visible characters. */
function isBlank(block: unknown): boolean {
  if (!isRecord(block) || (block.type !== "text" && block.type !== "thinking")) return false;
  const text = block.type === "text" ? block.text : block.thinking;
  return typeof text === "string" && text.trim() === "";
}

/** Returns the image that a blob reference represents, or `null` if the blob is not an image. */
function describeBlobImage({ type, skein }: Fields): Fields | null {
  const blob = type === "text" && isRecord(skein) ? skein.blob : null;
  if (!isRecord(blob) || blob.was !== "image" || typeof blob.mimeType !== "string") return null;
  const mimeType = blob.mimeType.slice(0, 100);
  return { type: "image", mimeType, omitted: true, bytes: Number(blob.bytes) || 0 };
}

/** A message as returned by a tool. */
interface CleanedMessage {
  readonly message: Readonly<Record<string, unknown>>;
  /** `true` if any text in the message was truncated. */
  readonly truncated: boolean;
  /** `true` if anything in the message was masked. */
  readonly redacted: boolean;
}

interface CleanOptions {
  readonly redactor: Pick<Redactor, "redactJson">;
  /** If `false`, tool calls are omitted. */
  readonly includeTools: boolean;
}

const longestText = 4000;
const longestName = 256;
const deepest = 64;
const cutMark = "\n…(truncated)…";

/** Fields about a message's origin and cost, and fields that only the provider or this machine can use. */
const dropped = new Set(["details", "usage", "cost", "skein", "encrypted_content", "fullOutputPath"]);
/** IDs and type names are shown unchanged unless they are too long. */
const names = new Set([
  "id",
  "role",
  "type",
  "timestamp",
  "toolCallId",
  "customType",
  "mimeType",
  "firstKeptEntryId",
  "fromId",
  "runId",
]);
const provenanceNames = new Set([
  "kind",
  "sourceSessionKey",
  "sourceChannel",
  "sourceTool",
  "sourcePeer",
  "rootId",
  "deliveryId",
]);

/** Redacts and then truncates all text in a message. Omits signatures, usage and image data. */
export function cleanMessage(message: Fields, options: CleanOptions): CleanedMessage {
  const cleaner = new Cleaner(options);
  const cleaned = cleaner.record(message, 0);
  const { id } = message;
  // The ID is kept at any length because paging needs it.
  const shown = typeof id === "string" ? { ...cleaned, id } : cleaned;
  return { message: shown, truncated: cleaner.truncated, redacted: cleaner.redacted };
}

class Cleaner {
  truncated = false;
  redacted = false;
  readonly #options: CleanOptions;

  constructor(options: CleanOptions) {
    this.#options = options;
  }

  /** Cleans a message, one of its blocks, or a nested block. */
  record(value: Fields, depth: number): Fields {
    const image = describeBlobImage(value);
    if (image !== null) return image;
    const binary = isBinary(value);
    const fields = Object.entries(value).filter(([name]) => !isDropped(name) && !(binary && name === "data"));
    return Object.fromEntries([
      ...fields.flatMap(([name, each]) => this.#field(name, each, depth)),
      ...(binary ? Object.entries({ omitted: true, bytes: decodedSize(value.data as string) }) : []),
    ]);
  }

  #field(name: string, value: unknown, depth: number): [string, unknown][] {
    if (names.has(name) && isName(value)) return [[name, value]];
    if (depth < deepest && (name === "content" || name === "source") && typeof value === "object") {
      return [[name, this.#nested(value, depth + 1)]];
    }
    if (name === "provenance" && isRecord(value)) return [[name, this.#provenance(value)]];
    return Object.entries(this.#plain({ [name]: value }) as Fields);
  }

  #nested(value: object | null, depth: number): unknown {
    if (isRecord(value)) return this.record(value, depth);
    if (!Array.isArray(value)) return value;
    return value
      .filter((block) => this.#options.includeTools || !isToolBlock(block))
      .map((block) => (isRecord(block) ? this.record(block, depth) : this.#plain(block)));
  }

  #provenance(value: Fields): Fields {
    const isName = ([name, each]: [string, unknown]) => provenanceNames.has(name) && typeof each === "string";
    const fields = Object.entries(value);
    const others = Object.fromEntries(fields.filter((field) => !isName(field)));
    return { ...(this.#plain(others) as Fields), ...Object.fromEntries(fields.filter(isName)) };
  }

  /** Cleans any JSON value. Field names affect redaction and are redacted too. Call arguments keep all their fields. */
  #plain(value: unknown): unknown {
    const { value: safe, count } = this.#options.redactor.redactJson(this.#shallow(value, 0));
    if (count > 0) this.redacted = true;
    return mapStrings(safe, (text) => this.#cut(text));
  }

  /** Truncates values that are nested too deeply to be read or serialized. */
  #shallow(value: unknown, depth: number): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (depth > deepest) {
      this.truncated = true;
      return cutMark.trim();
    }
    if (Array.isArray(value)) return value.map((each) => this.#shallow(each, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, this.#shallow(each, depth + 1)]),
    );
  }

  #cut(text: string): string {
    if (text.length <= longestText) return text;
    this.truncated = true;
    return cutText(text, longestText) + cutMark;
  }
}

function isDropped(name: string): boolean {
  return dropped.has(name) || /signature$/i.test(name);
}

function isName(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && value.length <= longestName);
}

/** Returns the decoded size of base64 data, in bytes. */
function decodedSize(data: string): number {
  return Buffer.byteLength(data.replace(/\s+/g, ""), "base64");
}

/** The maximum size of the messages as UTF-8 JSON, including brackets and commas. */
const maxHistoryBytes = 80 * 1024;

const tooLarge = { role: "assistant", content: "[sessions_history omitted: message too large]" };

interface CappedMessages<Entry> {
  /** Oldest first. */
  readonly messages: readonly CleanedMessage["message"][];
  /** The entry IDs of the messages. A note about an oversized message has the ID of that message's entry. */
  readonly taken: readonly Entry[];
  readonly totalBytes: number;
  readonly hardCapped: boolean;
  /** The number of messages omitted, including one that is too large. */
  readonly dropped: number;
  /** Refers only to the messages that are shown. */
  readonly truncated: boolean;
  readonly redacted: boolean;
}

interface CapOptions {
  readonly forward?: boolean;
  readonly maxBytes?: number;
}

/**
 * Returns as many messages as fit, from the requested end. If not even one message fits, a note replaces it. Messages
 * that do not fit are not cleaned.
 */
export function capMessages<Entry>(
  entries: readonly Entry[],
  clean: (entry: Entry) => CleanedMessage,
  options: CapOptions = {},
): CappedMessages<Entry> {
  return atOnce(capMessagesInSteps(entries, clean, options));
}

/** Like `capMessages`, but processes one message at a time, because redacting a long message takes time. */
export function* capMessagesInSteps<Entry>(
  entries: readonly Entry[],
  clean: (entry: Entry) => CleanedMessage,
  { forward = false, maxBytes = maxHistoryBytes }: CapOptions = {},
): Steps<CappedMessages<Entry>> {
  const cleanedMessages: CleanedMessage[] = [];
  let totalBytes = 2;
  for (const entry of forward ? entries : entries.toReversed()) {
    const cleaned = clean(entry);
    const separator = cleanedMessages.length === 0 ? 0 : 1;
    const bytes = Buffer.byteLength(stringifyJson(cleaned.message)) + separator;
    if (totalBytes + bytes > maxBytes) break;
    totalBytes += bytes;
    cleanedMessages.push(cleaned);
    yield bytes;
  }
  const count = cleanedMessages.length;
  if (count === 0 && entries.length > 0) return replaceTooLarge(entries, forward);
  const messages = cleanedMessages.map(({ message }) => message);
  const dropped = entries.length - count;
  return {
    messages: forward ? messages : messages.reverse(),
    taken: forward ? entries.slice(0, count) : entries.slice(dropped),
    totalBytes,
    hardCapped: dropped > 0,
    dropped,
    truncated: cleanedMessages.some(({ truncated }) => truncated),
    redacted: cleanedMessages.some(({ redacted }) => redacted),
  };
}

function replaceTooLarge<Entry>(entries: readonly Entry[], forward: boolean): CappedMessages<Entry> {
  return {
    messages: [tooLarge],
    taken: forward ? entries.slice(0, 1) : entries.slice(-1),
    totalBytes: Buffer.byteLength(JSON.stringify([tooLarge])),
    hardCapped: true,
    dropped: entries.length,
    truncated: false,
    redacted: false,
  };
}

/** Selects and cleans entries for a tool that reads sessions. */
interface EntryReader {
  isWanted(entry: ShownEntry): boolean;
  clean(entry: ShownEntry): CleanedMessage;
}

export function createEntryReader(redactor: Redactor, includeTools: boolean): EntryReader {
  return {
    isWanted: (entry) =>
      includeTools || entry.type !== "message" || !isToolMessage(entry.message as unknown as Fields),
    clean: (entry) => {
      const message: Fields = { ...messageOf(entry) };
      const timestamp = message.timestamp ?? (Date.parse(entry.timestamp) || 0);
      return cleanMessage({ ...message, timestamp }, { redactor, includeTools });
    },
  };
}
