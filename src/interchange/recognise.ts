import { splitLines } from "../core/lines.ts";
import { isRecord } from "../core/shape.ts";
import type { Source } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { parseObject } from "./json-lines.ts";

/** How much of a file is looked at; a longer head does no harm. */
export const headBytes = 256 * 1024;
const mostLines = 200;

/**
 * Whose format a file has, by its beginning; `null` for none that we know. Lines that say nothing, foreign ones and
 * damaged ones, are passed over; the first that tells decides.
 */
export function recognise(head: string | Uint8Array): Source | null {
  let entries = false;
  let count = 0;
  const looked = head.slice(0, headBytes);
  for (const { text, complete, offset } of splitLines(looked)) {
    count += 1;
    if (count > mostLines) break;
    const value = text === null ? null : parseObject(text);
    const fragment = value === null && !complete ? decoded(looked.slice(offset, offset + 2000)) : "";
    const found = value === null ? ofFragment(fragment) : ofObject(value);
    if (found !== null) return found;
    if (value !== null && isEntry(value)) entries = true;
  }
  if (entries) return "pi";
  return isOldCodex(head) ? "codex" : null;
}

const codexTypes = new Set([
  "session_meta",
  "response_item",
  "event_msg",
  "turn_context",
  "compacted",
  "world_state",
]);
/** Lines of Claude Code that have no uuid. */
const claudeTypes = new Set([
  "ai-title",
  "custom-title",
  "agent-name",
  "last-prompt",
  "mode",
  "permission-mode",
  "queue-operation",
  "tag",
]);

function ofObject(value: JsonObject): Source | null {
  const { type } = value;
  if (type === "session" && typeof value.id === "string") return isRecord(value.skein) ? "skein" : "pi";
  if (typeof type !== "string") return isBareCodex(value) ? "codex" : null;
  if (codexTypes.has(type) && isRecord(value.payload)) return "codex";
  if (typeof value.uuid === "string" && ("parentUuid" in value || typeof value.sessionId === "string"))
    return "claude-code";
  if (type === "summary" && typeof value.leafUuid === "string") return "claude-code";
  if (type === "file-history-snapshot" && "snapshot" in value) return "claude-code";
  return claudeTypes.has(type) && typeof value.sessionId === "string" ? "claude-code" : null;
}

/** Codex before September 2025 wrote its lines without an envelope. */
function isBareCodex(value: JsonObject): boolean {
  const header = typeof value.id === "string" && typeof value.timestamp === "string";
  return value.record_type === "state" || (header && ("instructions" in value || "git" in value));
}

/** The earliest Codex wrote one JSON document, `{"session": …, "items": […]}`, over many lines. */
function isOldCodex(head: string | Uint8Array): boolean {
  return /^\s*\{\s*"session"\s*:\s*\{[^{}]*"(?:id|timestamp)"\s*:/.test(decoded(head.slice(0, 4096)));
}

function decoded(part: string | Uint8Array): string {
  return typeof part === "string" ? part.replace(/^\ufeff/, "") : new TextDecoder().decode(part);
}

/** A line that is longer than the head. */
function ofFragment(beginning: string): Source | null {
  if (
    /^\{(?:"timestamp":"[^"]*",)?(?:"ordinal":\d+,)?"type":"(?:session_meta|response_item)","payload":\{/.test(
      beginning,
    )
  )
    return "codex";
  if (/^\{"type":"session",(?:"version":\d+,)?"id":"/.test(beginning)) return "pi";
  return /^\{"parentUuid":(?:null|"[^"]*"),/.test(beginning) ? "claude-code" : null;
}

/** An entry of ours, for files whose header is lost. */
function isEntry(value: JsonObject): boolean {
  return (
    typeof value.id === "string" &&
    typeof value.timestamp === "string" &&
    (value.parentId === null || typeof value.parentId === "string")
  );
}
