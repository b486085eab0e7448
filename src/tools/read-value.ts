import { nearest } from "../config/problems.ts";
import { isRecord } from "../core/is-record.ts";
import { own } from "../core/json.ts";
import type { JsonSchema } from "../core/schema.ts";
import { cutText, inLine } from "../core/text.ts";
import { ToolInputError } from "./session-tool.ts";

/**
 * Converts a value to match its schema. Numbers are floored and clamped, and strings are trimmed. Returns `undefined`
 * for values that are treated as absent, such as `null` and blank strings. Throws a ToolInputError with the path.
 */
export function readValue(schema: JsonSchema, value: unknown, path: string): unknown {
  if (value === undefined || value === null) return undefined;
  const choices = choicesOf(schema);
  if (choices !== null) return readChoice(choices, value, path);
  if (schema.anyOf !== undefined) return readAny(schema.anyOf, value, path);
  switch (schema.type) {
    case "integer":
    case "number":
      return readNumber(schema, value, path);
    case "string":
      return readText(schema, value, path);
    case "boolean":
      if (typeof value === "boolean") return value;
      throw expected("true or false", value, path);
    case "array":
      return readArray(schema, value, path);
    case "object":
      return readFields(schema, value, path);
    default:
      return value;
  }
}

/** Returns an object's fields without the absent ones. */
export function readFields(schema: JsonSchema, value: unknown, path: string): Record<string, unknown> {
  if (!isRecord(value)) throw expected("an object", value, path);
  const { properties, required = [] } = schema;
  if (properties === undefined) return { ...value };
  refuseUnknown(value, Object.keys(properties), path);
  const read = Object.entries(properties).flatMap(([name, each]) => {
    const given = readValue(each, own(value, name), pathTo(path, name));
    return given === undefined ? [] : [[name, given] as const];
  });
  const fields = Object.fromEntries(read);
  const missing = required.find((name) => !Object.hasOwn(fields, name));
  if (missing !== undefined) {
    throw new ToolInputError(`${pathTo(path, missing)} is required`, pathTo(path, missing));
  }
  return fields;
}

/** Throws for an unknown name and suggests a similar one. A name whose value is `undefined` is treated as absent. */
export function refuseUnknown(
  value: Readonly<Record<string, unknown>>,
  known: readonly string[],
  path: string,
): void {
  const unknown = Object.keys(value).find((name) => value[name] !== undefined && !known.includes(name));
  if (unknown === undefined) return;
  const name = inLine(unknown, longestShown);
  const similar = nearest(cutText(unknown, longestShown), known);
  const guess = similar === null ? "" : ` (did you mean ${similar}?)`;
  const there =
    known.length === 0 ? "this object has no parameters" : `the parameters are ${known.join(", ")}`;
  throw new ToolInputError(`Unknown parameter "${pathTo(path, name)}"${guess}: ${there}`, pathTo(path, name));
}

/** Returns the allowed values if the schema is a choice, otherwise `null`. */
function choicesOf(schema: JsonSchema): readonly unknown[] | null {
  if (schema.enum !== undefined) return schema.enum;
  if ("const" in schema) return [schema.const];
  const { anyOf = [] } = schema;
  return anyOf.length > 0 && anyOf.every((each) => "const" in each) ? anyOf.map((each) => each.const) : null;
}

/** Reads a choice, ignoring case. */
function readChoice(choices: readonly unknown[], value: unknown, path: string): unknown {
  if (choices.includes(value)) return value;
  const word = typeof value === "string" ? value.trim() : null;
  if (word === "") return undefined;
  const same = (each: unknown) => typeof each === "string" && each.toLowerCase() === word?.toLowerCase();
  const choice = choices.includes(word) ? word : choices.find(same);
  if (choice !== undefined) return choice;
  const shownChoices = choices.map((each) => JSON.stringify(each)).join(", ");
  throw expected(choices.length === 1 ? shownChoices : `one of ${shownChoices}`, value, path);
}

function readAny(schemas: readonly JsonSchema[], value: unknown, path: string): unknown {
  for (const schema of schemas) {
    try {
      return readValue(schema, value, path);
    } catch (error) {
      if (!(error instanceof ToolInputError)) throw error;
    }
  }
  throw new ToolInputError(`${path} does not match any of the allowed formats, got ${shown(value)}`, path);
}

function readNumber({ minimum, maximum }: JsonSchema, value: unknown, path: string): number {
  if (typeof value !== "number" || !Number.isFinite(value)) throw expected("a number", value, path);
  const least = Math.max(Math.floor(value), minimum ?? Number.NEGATIVE_INFINITY);
  return Math.min(least, maximum ?? Number.POSITIVE_INFINITY);
}

function readText(schema: JsonSchema, value: unknown, path: string): string | undefined {
  const { keep = false, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  if (typeof value !== "string") throw expected("a string", value, path);
  const isBlank = value.trim() === "";
  if (isBlank && (!keep || minLength > 0)) return undefined;
  const text = keep ? value : value.trim();
  if (isLonger(text, maxLength)) throw expected(`a string of at most ${maxLength} characters`, value, path);
  if (!isLonger(text, minLength - 1))
    throw expected(`a string of at least ${minLength} characters`, value, path);
  return text;
}

/** Counts code points, but stops early if the string is far too long. */
function isLonger(text: string, most: number): boolean {
  return text.length > most && (text.length > 2 * most || [...text].length > most);
}

/** Reads a list. Blank strings are dropped. */
function readArray(schema: JsonSchema, value: unknown, path: string): readonly unknown[] {
  const { items = {}, minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema;
  if (!Array.isArray(value)) throw expected("a list", value, path);
  if (value.length > maxItems) {
    throw new ToolInputError(`${path} must have at most ${maxItems} items, got ${value.length}`, path);
  }
  const read = Array.from(value as readonly unknown[], (each, index) => {
    const place = pathTo(path, String(index));
    if (each === null || each === undefined) throw expected("set", each, place);
    return readValue(items, each, place);
  }).filter((each) => each !== undefined);
  if (read.length < minItems) {
    throw new ToolInputError(`${path} must have at least ${minItems} items, got ${read.length}`, path);
  }
  return read;
}

export function expected(what: string, value: unknown, path: string): ToolInputError {
  return new ToolInputError(`${path} must be ${what}, got ${shown(value)}`, path);
}

function pathTo(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

const longestShown = 60;

/** Formats a value of any type for an error message. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case "string":
      return `"${inLine(value, longestShown)}"`;
    case "number":
    case "boolean":
      return String(value);
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
    default:
      return value === undefined ? "nothing" : `a ${typeof value}`;
  }
}
