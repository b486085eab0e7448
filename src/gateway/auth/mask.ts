import { mapStrings } from "../../access/redaction/map-strings.ts";
import type { Redactor } from "../../access/redaction/redactor.ts";
import { isRecord } from "../../core/is-record.ts";
import { isBinary } from "../../core/messages.ts";
import type { Steps } from "../../core/slices.ts";
import { withoutAbsolutePaths } from "../../core/text.ts";

/**
 * Masks content for a caller. Admins see it unchanged. All other callers see it without secrets and file paths. Content
 * is masked before it is truncated, because half a secret would not be recognized.
 */
export interface Mask {
  text(text: string): string;
  /** Like `text`, but processes long text in chunks. */
  longText(text: string): Steps<string>;
  /** Masks any JSON value, such as an entry or a message. IDs, types and image bytes are left unchanged. */
  value<T>(value: T): T;
  /** Masks JSON with unknown fields. No field name exempts a value from masking. */
  plain<T>(value: T): T;
  /** Whether anything has been masked so far. */
  readonly hasMasked: boolean;
  readonly isOff: boolean;
}

export function maskFor(
  { redactor }: { readonly redactor: Redactor },
  { isAdmin }: { readonly isAdmin: boolean },
): Mask {
  return isAdmin ? off : new TextMask(withoutTranscriptPaths(redactor));
}

const same = <T>(value: T): T => value;
const off: Mask = {
  text: same,
  // biome-ignore lint/correctness/useYield: returning the text unchanged takes no steps
  *longText(text) {
    return text;
  },
  value: same,
  plain: same,
  hasMasked: false,
  isOff: true,
};

type Fields = Readonly<Record<string, unknown>>;

const paths = new Set(["cwd", "parentSession", "fullOutputPath"]);
/** Clients rely on the values of these fields, so a value is masked only if it is too long to be a name. */
const names = new Set([
  ...["id", "parentId", "type", "role", "timestamp", "version", "customType", "mimeType"],
  ...["targetId", "firstKeptEntryId", "fromId", "toolCallId", "toolName", "runId", "copyOf", "sha256", "was"],
  ...["provider", "model", "modelId", "api", "stopReason", "thinkingLevel"],
  ...["kind", "sourceSessionKey", "sourceChannel", "sourceTool", "rootId", "deliveryId"],
]);
const longestName = 256;
const pieceLength = 64 * 1024;
/** Fields whose objects are masked field by field. All other objects are masked as a whole. */
const inside = new Set([
  ...["message", "replacement", "content", "source", "skein", "blob", "provenance"],
  ...["meta", "importedFrom", "claimed"],
]);
const deepest = 32;

class TextMask implements Mask {
  hasMasked = false;
  readonly isOff = false;
  readonly #redactor: Redactor;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  text(text: string): string {
    const { text: safe, count } = this.#redactor.redact(text);
    if (count > 0) this.hasMasked = true;
    return safe;
  }

  *longText(text: string): Steps<string> {
    const stream = this.#redactor.stream();
    const parts: string[] = [];
    for (let at = 0; at < text.length; at += pieceLength) {
      const piece = text.slice(at, at + pieceLength);
      parts.push(stream.push(piece));
      yield piece.length;
    }
    parts.push(stream.end());
    const safe = removeTranscriptPath(parts.join(""));
    if (safe !== text) this.hasMasked = true;
    return safe;
  }

  value<T>(value: T): T {
    return this.#any(value, 0) as T;
  }

  plain<T>(value: T): T {
    const { value: safe, count } = this.#redactor.redactJson(value);
    if (count > 0) this.hasMasked = true;
    return safe as T;
  }

  #any(value: unknown, depth: number): unknown {
    if (typeof value === "string") return this.text(value);
    if (typeof value !== "object" || value === null) return value;
    if (depth > deepest) return this.plain(value);
    if (!isRecord(value)) return (value as readonly unknown[]).map((each) => this.#any(each, depth + 1));
    return Object.fromEntries(
      Object.entries(value).flatMap(([name, each]) => this.#field(name, each, value, depth)),
    );
  }

  #field(name: string, value: unknown, of: Fields, depth: number): [string, unknown][] {
    if (paths.has(name)) return [];
    if (names.has(name) && isName(value)) return [[name, value]];
    if (name === "data" && isBinary(of)) return [[name, value]];
    if (inside.has(name) && typeof value === "object") return [[name, this.#any(value, depth + 1)]];
    return Object.entries(this.plain<Fields>({ [name]: value }));
  }
}

function isName(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && value.length <= longestName);
}

const field = "transcriptPath";
/** Matches the JSON field, even in JSON that is nested in strings at any depth. */
const inText = /("transcriptPath\\*": ?\\*")([^"]*)/g;

/**
 * Returns a redactor that also removes the paths of session files. `sessions_list` shows these paths to agents, so they
 * appear in transcripts, but only admins are allowed to see them.
 */
export function withoutTranscriptPaths(redactor: Redactor): Redactor {
  return {
    redact: (text) => {
      const { text: safe, count } = redactor.redact(text);
      return { text: removeTranscriptPath(safe), count };
    },
    redactJson: (value) => {
      const { value: safe, count } = redactor.redactJson(value);
      return {
        value: mapStrings(safe, (text, key) => (key === field ? "" : removeTranscriptPath(text))),
        count,
      };
    },
    stream: () => redactor.stream(),
  };
}

/** Removes the path but keeps the field name and the closing quote. */
export function removeTranscriptPath(text: string): string {
  if (!text.includes(field)) return text;
  return text.replace(inText, (_, head: string, path: string) => head + endOf(path));
}

/** Returns the backslashes before the closing quote. */
function endOf(path: string): string {
  let from = path.length;
  while (from > 0 && path[from - 1] === "\\") from--;
  return path.slice(from);
}

/**
 * Prepares a tool result for a client without the `admin` scope: removes the paths of session files, and all paths from
 * errors.
 */
export function removePaths<T extends Readonly<Record<string, unknown>>>(result: T, isError: boolean): T {
  if (isError) return mapStrings(result, withoutAbsolutePaths) as T;
  const { sessions } = result;
  if (!Array.isArray(sessions)) return result;
  const rows = sessions.map(({ transcriptPath: _, ...row }: Readonly<Record<string, unknown>>) => row);
  return { ...result, sessions: rows };
}
