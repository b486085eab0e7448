import { splitLines } from "../core/lines.ts";
import { isRecord } from "../core/shape.ts";
import { cutText } from "../core/text.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** A line that holds a JSON object, or one that does not and is then known by its beginning alone. */
export type JsonLine =
  | { readonly line: number; readonly length: number; readonly value: JsonObject }
  | { readonly line: number; readonly length: number; readonly value: null; readonly beginning: string };

/** To make something of a line that is parsed takes as long as to read so much. */
export const lineBytes = 512;

/** The lines of a file, one by one: no more of it is decoded at a time. Never throws. */
export function* readJsonLines(source: string | Uint8Array): Generator<JsonLine> {
  for (const { line, text, length } of splitLines(source)) {
    const value = text === null ? null : parseObject(text);
    const beginning = cutText(text ?? "(not UTF-8)", 80).toWellFormed();
    yield value === null ? { line, length, value, beginning } : { line, length, value };
  }
}

/** The object that a text holds, or `null`. */
export function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

export function textField(value: JsonObject, field: string): string | null {
  const found = value[field];
  return typeof found === "string" ? found : null;
}

export function objectField(value: JsonObject, field: string): JsonObject | null {
  const found = value[field];
  return isRecord(found) ? found : null;
}

export function listField(value: JsonObject, field: string): readonly unknown[] {
  const found = value[field];
  return Array.isArray(found) ? found : [];
}

/** A number that can be counted with: finite and not below zero. */
export function countField(value: JsonObject, field: string): number {
  const found = value[field];
  return typeof found === "number" && Number.isFinite(found) && found > 0 ? found : 0;
}

/** A time as text, or as milliseconds; `null` for anything else. */
export function timeField(value: JsonObject, field: string): number | null {
  const found = value[field];
  const time = typeof found === "string" ? Date.parse(found) : found;
  return typeof time === "number" && Math.abs(time) <= 8.64e15 ? Math.trunc(time) : null;
}
