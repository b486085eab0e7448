import { isRecord } from "../core/is-record.ts";
import { splitLines } from "../core/lines.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export interface JsonLine {
  /** The line number, starting at 1. */
  readonly line: number;
  readonly length: number;
  /** `null` if the line is not a JSON object. */
  readonly value: JsonObject | null;
}

/** Converting a parsed line takes about as long as reading this many bytes. */
export const lineBytes = 512;

/** Decodes a file line by line because the file can exceed the maximum string length. Never throws. */
export function* readJsonLines(source: string | Uint8Array): Generator<JsonLine> {
  for (const { line, text, length } of splitLines(source))
    yield { line, length, value: text === null ? null : parseObject(text) };
}

/** Returns `null` if the text is not a JSON object. */
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

/** Returns a finite positive number, or 0 for anything else. */
export function countField(value: JsonObject, field: string): number {
  const found = value[field];
  return typeof found === "number" && Number.isFinite(found) && found > 0 ? found : 0;
}

/** Returns milliseconds since 1970, from text or a number, or `null` for anything else. */
export function timeField(value: JsonObject, field: string): number | null {
  const found = value[field];
  const time = typeof found === "string" ? Date.parse(found) : found;
  return typeof time === "number" && Math.abs(time) <= 8.64e15 ? Math.trunc(time) : null;
}
