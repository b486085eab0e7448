import { mapStrings } from "../access/redaction/map-strings.ts";
import type { Redactor } from "../access/redaction/redactor.ts";
import { stringifyJson } from "../core/json.ts";
import { isRecord } from "../core/shape.ts";
import type { Steps } from "../core/slices.ts";
import { atOnce } from "../core/slices.ts";
import { cutText } from "../core/text.ts";
import type { ShownEntry } from "../sessions/history.ts";
import { messageOf } from "../sessions/history.ts";

/** The blocks of messages as a session tool shows them. */

const toolRoles = new Set(["toolResult", "tool"]);
const toolBlocks = new Set(["toolCall", "toolResult", "tool_use", "tool_result"]);
const binaryTypes = new Set(["image", "audio", "file", "document", "base64", "redacted_thinking"]);
const mimeNames = ["mimeType", "mediaType", "media_type"];

type Fields = Readonly<Record<string, unknown>>;

function isToolBlock(block: unknown): boolean {
  return isRecord(block) && typeof block.type === "string" && toolBlocks.has(block.type);
}

/** A tool's result, or an answer that says nothing and only calls tools. */
export function isToolMessage(message: Fields): boolean {
  const { role, content, errorMessage } = message;
  if (typeof role === "string" && toolRoles.has(role)) return true;
  if (!Array.isArray(content) || errorMessage !== undefined || !content.some(isToolBlock)) return false;
  return content.every((block) => isToolBlock(block) || isBlank(block));
}

/** A text or thought without a word in it. */
function isBlank(block: unknown): boolean {
  if (!isRecord(block) || (block.type !== "text" && block.type !== "thinking")) return false;
  const said = block.type === "text" ? block.text : block.thinking;
  return typeof said === "string" && said.trim() === "";
}

/** Whether `data` of a block is bytes as base64, and no text. */
export function isBinary(block: Fields): boolean {
  const { type, data } = block;
  if (typeof data !== "string") return false;
  const isOfType = typeof type === "string" && binaryTypes.has(type);
  return isOfType || mimeNames.some((name) => typeof block[name] === "string");
}

/** An image that lives in a blob, as the image that it was; `null`: it is none. */
function describeBlobImage({ type, skein }: Fields): Fields | null {
  const blob = type === "text" && isRecord(skein) ? skein.blob : null;
  if (!isRecord(blob) || blob.was !== "image" || typeof blob.mimeType !== "string") return null;
  const mimeType = blob.mimeType.slice(0, 100);
  return { type: "image", mimeType, omitted: true, bytes: Number(blob.bytes) || 0 };
}

/** A message as a tool shows it. */
interface CleanedMessage {
  readonly message: Readonly<Record<string, unknown>>;
  /** A text of it was cut. */
  readonly truncated: boolean;
  /** Something in it was masked. */
  readonly redacted: boolean;
}

interface CleanOptions {
  readonly redactor: Pick<Redactor, "redactJson">;
  /** `false`: tool calls are left out. */
  readonly includeTools: boolean;
}

const longestText = 4000;
const longestName = 256;
const deepest = 64;
const cutMark = "\n…(truncated)…";

/** How a message came about, what it cost, and what only the provider or this machine can do something with. */
const dropped = new Set(["details", "usage", "cost", "skein", "encrypted_content", "fullOutputPath"]);
/** Ids and names of types: shown as they are, unless they are too long to be that. */
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

/** Every text of a message redacted, then cut; without signatures, figures and the bytes of images. */
export function cleanMessage(message: Fields, options: CleanOptions): CleanedMessage {
  const cleaner = new Cleaner(options);
  const cleaned = cleaner.record(message, 0);
  const { id } = message;
  // Paging goes by it, however long it is.
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

  /** A message, or a block of one, or what a block nests. */
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
    const isKept = ([name, each]: [string, unknown]) => provenanceNames.has(name) && typeof each === "string";
    const fields = Object.entries(value);
    const others = Object.fromEntries(fields.filter((field) => !isKept(field)));
    return { ...(this.#plain(others) as Fields), ...Object.fromEntries(fields.filter(isKept)) };
  }

  /** Any JSON: its strings by their names too, and the names themselves. Arguments of calls keep all their fields. */
  #plain(value: unknown): unknown {
    const { value: safe, count } = this.#options.redactor.redactJson(this.#shallow(value, 0));
    if (count > 0) this.redacted = true;
    return mapStrings(safe, (text) => this.#cut(text));
  }

  /** Nothing that is nested deeper than a reader can follow, or a writer write. */
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

/** Of base64, as bytes. */
function decodedSize(data: string): number {
  return Buffer.byteLength(data.replace(/\s+/g, ""), "base64");
}

/** Of the messages as UTF-8 JSON, brackets and commas too. */
const maxHistoryBytes = 80 * 1024;

const tooLarge = { role: "assistant", content: "[sessions_history omitted: message too large]" };

interface CappedMessages<Entry> {
  /** Oldest first. */
  readonly messages: readonly CleanedMessage["message"][];
  /** The entries that these stand for; of a message that is too large, its own. */
  readonly taken: readonly Entry[];
  readonly totalBytes: number;
  readonly hardCapped: boolean;
  /** How many were left out, a message that is too large among them. */
  readonly dropped: number;
  /** Of the messages that are shown. */
  readonly truncated: boolean;
  readonly redacted: boolean;
}

interface CapOptions {
  readonly forward?: boolean;
  readonly most?: number;
}

/**
 * As many as fit, from the end that the reader asked for; if not even one does, a stand-in for it. What does not fit is not
 * cleaned either.
 */
export function capMessages<Entry>(
  entries: readonly Entry[],
  clean: (entry: Entry) => CleanedMessage,
  options: CapOptions = {},
): CappedMessages<Entry> {
  return atOnce(capMessagesInSteps(entries, clean, options));
}

/** The same message by message, for those that may be long: each is redacted whole before it is cut. */
export function* capMessagesInSteps<Entry>(
  entries: readonly Entry[],
  clean: (entry: Entry) => CleanedMessage,
  { forward = false, most = maxHistoryBytes }: CapOptions = {},
): Steps<CappedMessages<Entry>> {
  const kept: CleanedMessage[] = [];
  let totalBytes = 2;
  for (const entry of forward ? entries : entries.toReversed()) {
    const cleaned = clean(entry);
    const bytes = Buffer.byteLength(stringifyJson(cleaned.message)) + (kept.length === 0 ? 0 : 1);
    if (totalBytes + bytes > most) break;
    totalBytes += bytes;
    kept.push(cleaned);
    yield bytes;
  }
  if (kept.length === 0 && entries.length > 0) return replaceTooLarge(entries, forward);
  const messages = kept.map(({ message }) => message);
  const dropped = entries.length - kept.length;
  return {
    messages: forward ? messages : messages.reverse(),
    taken: forward ? entries.slice(0, kept.length) : entries.slice(dropped),
    totalBytes,
    hardCapped: dropped > 0,
    dropped,
    truncated: kept.some(({ truncated }) => truncated),
    redacted: kept.some(({ redacted }) => redacted),
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

/** How a tool that reads shows entries. */
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
