import { isRecord } from "../core/is-record.ts";
import { splitLines } from "../core/lines.ts";
import type { Steps } from "../core/slices.ts";
import { importClaudeCode } from "./import-claude-code.ts";
import { importCodex } from "./import-codex.ts";
import { importPi } from "./import-pi.ts";
import type { ImportedSession, ImportOptions, Source } from "./imported-session.ts";
import type { JsonObject } from "./json-lines.ts";
import { parseObject } from "./json-lines.ts";

const importers = { skein: importPi, pi: importPi, "claude-code": importClaudeCode, codex: importCodex };

/** Imports a session from any supported program, or returns `null` if the format is unknown. Never throws. */
export function* importSession(
  bytes: string | Uint8Array,
  options: ImportOptions = {},
): Steps<ImportedSession | null> {
  const source = recognizeSource(bytes);
  return source === null ? null : yield* importers[source](bytes, options);
}

const maxHeadBytes = 256 * 1024;
const maxLines = 200;

/**
 * Recognizes a file's format by its first lines, or returns `null` if it is unknown. The format is determined by the
 * first line that only one program writes. Damaged and unrecognized lines are skipped.
 */
export function recognizeSource(bytes: string | Uint8Array): Source | null {
  let hasEntries = false;
  let count = 0;
  const head = bytes.slice(0, maxHeadBytes);
  for (const { text, complete, offset } of splitLines(head)) {
    count += 1;
    if (count > maxLines) break;
    const value = text === null ? null : parseObject(text);
    const fragment = value === null && !complete ? decode(head.slice(offset, offset + 2000)) : "";
    const source = value === null ? recognizeFragment(fragment) : recognizeObject(value);
    if (source !== null) return source;
    if (value !== null && isEntry(value)) hasEntries = true;
  }
  if (hasEntries) return "pi";
  return isCodexDocument(bytes) ? "codex" : null;
}

const codexTypes = new Set(
  "session_meta response_item event_msg turn_context compacted world_state".split(" "),
);
/** Claude Code line types that have no uuid. */
const claudeTypes = new Set(
  "ai-title custom-title agent-name last-prompt mode permission-mode queue-operation tag".split(" "),
);

function recognizeObject(value: JsonObject): Source | null {
  const { type } = value;
  if (type === "session" && typeof value.id === "string") return isRecord(value.skein) ? "skein" : "pi";
  if (typeof type !== "string") return isBareCodex(value) ? "codex" : null;
  if (codexTypes.has(type) && isRecord(value.payload)) return "codex";
  const hasSessionId = typeof value.sessionId === "string";
  const isClaudeCode =
    (typeof value.uuid === "string" && ("parentUuid" in value || hasSessionId)) ||
    (type === "summary" && typeof value.leafUuid === "string") ||
    (type === "file-history-snapshot" && "snapshot" in value) ||
    (claudeTypes.has(type) && hasSessionId);
  return isClaudeCode ? "claude-code" : null;
}

/** Before September 2025, Codex wrote its lines without an envelope. */
function isBareCodex(value: JsonObject): boolean {
  const isHeader = typeof value.id === "string" && typeof value.timestamp === "string";
  return value.record_type === "state" || (isHeader && ("instructions" in value || "git" in value));
}

/** The earliest Codex versions wrote one JSON document, `{"session": …, "items": […]}`, over many lines. */
function isCodexDocument(bytes: string | Uint8Array): boolean {
  return /^\s*\{\s*"session"\s*:\s*\{[^{}]*"(?:id|timestamp)"\s*:/.test(decode(bytes.slice(0, 4096)));
}

function decode(part: string | Uint8Array): string {
  return typeof part === "string" ? part.replace(/^\ufeff/, "") : new TextDecoder().decode(part);
}

/** Recognizes a line that is longer than the part that was read. */
function recognizeFragment(start: string): Source | null {
  const codexLine =
    /^\{(?:"timestamp":"[^"]*",)?(?:"ordinal":\d+,)?"type":"(?:session_meta|response_item)","payload":\{/;
  if (codexLine.test(start)) return "codex";
  if (/^\{"type":"session",(?:"version":\d+,)?"id":"/.test(start)) return "pi";
  return /^\{"parentUuid":(?:null|"[^"]*"),/.test(start) ? "claude-code" : null;
}

/** Whether the line is an entry from pi or Skein, for files whose header is missing. */
function isEntry(value: JsonObject): boolean {
  return (
    typeof value.id === "string" &&
    typeof value.timestamp === "string" &&
    (value.parentId === null || typeof value.parentId === "string")
  );
}
