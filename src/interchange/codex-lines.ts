import { isRecord } from "../core/shape.ts";
import type { Steps } from "../core/slices.ts";
import type { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { listField, objectField, parseObject, readJsonLines, textField, timeField } from "./json-lines.ts";

/** One line of a Codex rollout, whatever the version: what it is, and its content. */
export interface CodexLine {
  readonly line: number;
  readonly time: number;
  /** `session_meta`, `turn_context`, `response_item`, `event_msg`, `compacted`; later versions add to it. */
  readonly type: string;
  readonly payload: JsonObject;
}

/** Reads the lines; damaged ones are told of and passed over. */
export function* readCodexLines(source: string | Uint8Array, losses: Losses): Steps<CodexLine[]> {
  const document = wholeDocument(source);
  if (document !== null) return document;
  const lines: CodexLine[] = [];
  let time = 0;
  for (const { line, value, length } of readJsonLines(source)) {
    yield length;
    const found = value === null ? null : contentOf(value);
    if (value === null || found === null) {
      losses.add("A damaged line was passed over.", `line ${line}`);
      continue;
    }
    time = timeField(value, "timestamp") ?? time;
    lines.push({ line, time, ...found });
  }
  return lines;
}

function contentOf(value: JsonObject): Pick<CodexLine, "type" | "payload"> | null {
  const type = textField(value, "type");
  const payload = objectField(value, "payload");
  if (type !== null && payload !== null) return { type, payload };
  // Before September 2025 there was no envelope: a header without a type, then the items themselves.
  if (type !== null) return "payload" in value ? null : { type: "response_item", payload: value };
  if (value.record_type !== undefined) return { type: "state", payload: value };
  return typeof value.id === "string" ? { type: "session_meta", payload: value } : null;
}

/** The earliest rollouts are one JSON document. */
function wholeDocument(source: string | Uint8Array): CodexLine[] | null {
  const head = typeof source === "string" ? source : new TextDecoder().decode(source.subarray(0, 100));
  if (!/^\ufeff?\s*\{\s*"session"\s*:/.test(head.slice(0, 100))) return null;
  const document = parseObject(typeof source === "string" ? source : new TextDecoder().decode(source));
  const session = document === null ? null : objectField(document, "session");
  if (document === null || session === null) return null;
  const time = timeField(session, "timestamp") ?? 0;
  const items = listField(document, "items").map((item, index) => ({ item, line: index + 2 }));
  return [
    { line: 1, time, type: "session_meta", payload: session },
    ...items.flatMap(({ item, line }) =>
      isRecord(item) ? [{ line, time, type: "response_item", payload: item }] : [],
    ),
  ];
}
