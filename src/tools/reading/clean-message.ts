import { mapStrings } from "../../access/redaction/map-strings.ts";
import type { Redactor } from "../../access/redaction/redactor.ts";
import { isRecord } from "../../core/shape.ts";
import { cutText } from "../../core/text.ts";
import { isBinary, isToolBlock, omitted } from "./blocks.ts";

/** A message as a tool shows it. */
export interface CleanedMessage {
  readonly message: Readonly<Record<string, unknown>>;
  /** A text of it was cut. */
  readonly truncated: boolean;
  /** Something in it was masked. */
  readonly redacted: boolean;
}

export interface CleanOptions {
  readonly redactor: Pick<Redactor, "redactJson">;
  /** `false`: tool calls are left out. */
  readonly includeTools: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

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
    const image = omitted(value);
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
