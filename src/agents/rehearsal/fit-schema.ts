import type { JSONObject, JSONValue } from "@ai-sdk/provider";
import { isRecord } from "../../core/is-record.ts";

/** Returns `undefined` if the text is not JSON. */
export function parseJson(text: string): JSONValue | undefined {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

type Schema = Readonly<Record<string, unknown>>;

/** The depth at which a recursive schema produces `null`. */
const maxDepth = 24;
const maxLength = 10_000;

/**
 * Returns a minimal value that matches a JSON Schema, always the same one. Unknown keywords are ignored.
 */
export function fitSchema(schema: unknown): JSONValue {
  return fitValue(schema, { root: schema, depth: 0, index: 0 });
}

interface Place {
  readonly root: unknown;
  readonly depth: number;
  /** The index within a list whose items must be unique. */
  readonly index: number;
}

function fitValue(given: unknown, place: Place): JSONValue {
  if (!isRecord(given) || place.depth > maxDepth) return null;
  const schema = resolveSchema(given, place);
  if ("const" in schema) return schema.const as JSONValue;
  if ("default" in schema && place.index === 0) return schema.default as JSONValue;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum[place.index % schema.enum.length] as JSONValue;
  }
  switch (typeOf(schema)) {
    case "object":
      return objectOf(schema, place);
    case "array":
      return arrayOf(schema, place);
    case "string":
      return stringOf(schema, place.index);
    case "integer":
      return numberOf(schema, place.index, 1);
    case "number":
      return numberOf(schema, place.index, null);
    case "boolean":
      return place.index % 2 === 1;
    default:
      return null;
  }
}

/** Follows `$ref`, and merges the first alternative of `anyOf` and `oneOf` with all of `allOf`. */
function resolveSchema(given: Schema, place: Place): Schema {
  let schema = given;
  for (let left = maxDepth; left > 0; left--) {
    const { $ref, anyOf, oneOf, allOf, ...rest } = schema;
    const more = [
      typeof $ref === "string" ? followReference($ref, place.root) : null,
      Array.isArray(anyOf) ? anyOf[0] : null,
      Array.isArray(oneOf) ? oneOf[0] : null,
      ...(Array.isArray(allOf) ? allOf : []),
    ].filter(isRecord);
    if (more.length === 0) return rest;
    schema = more.reduce(mergeSchemas, rest);
  }
  return {};
}

function mergeSchemas(one: Schema, other: Schema): Schema {
  const properties = { ...asObject(one.properties), ...asObject(other.properties) };
  const required = [...asList(one.required), ...asList(other.required)];
  return {
    ...one,
    ...other,
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required }),
  };
}

const asObject = (value: unknown): Schema => (isRecord(value) ? value : {});
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function followReference(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return null;
  const names = reference.slice(1).split("/").slice(1);
  return names.reduce<unknown>((value, name) => {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    return isRecord(value) && Object.hasOwn(value, key) ? value[key] : null;
  }, root);
}

function typeOf(schema: Schema): unknown {
  if (typeof schema.type === "string") return schema.type;
  if (Array.isArray(schema.type)) return schema.type[0];
  if ("properties" in schema || "required" in schema) return "object";
  if ("items" in schema || "prefixItems" in schema) return "array";
  if ("minLength" in schema || "maxLength" in schema || "format" in schema) return "string";
  return "minimum" in schema || "maximum" in schema || "exclusiveMinimum" in schema ? "number" : "null";
}

function objectOf(schema: Schema, { root, depth, index }: Place): JSONObject {
  const properties = asObject(schema.properties);
  const inner = { root, depth: depth + 1, index };
  const wanted = asList(schema.required).filter((name) => typeof name === "string");
  const named = new Map(
    wanted.map((name) => [name, fitValue(Object.hasOwn(properties, name) ? properties[name] : {}, inner)]),
  );
  const least = boundOf(schema.minProperties) ?? 0;
  for (const name of Object.keys(properties)) {
    if (named.size >= least) break;
    if (!named.has(name)) named.set(name, fitValue(properties[name], inner));
  }
  for (let more = 1; named.size < Math.min(least, maxLength); more++) {
    named.set(`field${more}`, fitValue(schema.additionalProperties, inner));
  }
  return Object.fromEntries(named);
}

function arrayOf(schema: Schema, { root, depth }: Place): JSONValue[] {
  const first = asList(schema.prefixItems);
  const least = boundOf(schema.minItems) ?? 0;
  return Array.from({ length: Math.min(least, maxLength) }, (_, index) =>
    fitValue(first[index] ?? schema.items, {
      root,
      depth: depth + 1,
      index: schema.uniqueItems === true ? index : 0,
    }),
  );
}

const formats: Readonly<Record<string, string>> = {
  date: "2026-01-01",
  "date-time": "2026-01-01T00:00:00Z",
  time: "00:00:00Z",
  email: "rehearsal@example.com",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
  ipv4: "127.0.0.1",
  ipv6: "::1",
  hostname: "example.com",
};

function stringOf(schema: Schema, index: number): string {
  const { format } = schema;
  const least = Math.min(boundOf(schema.minLength) ?? 0, maxLength);
  const most = boundOf(schema.maxLength) ?? maxLength;
  if (typeof format === "string" && Object.hasOwn(formats, format)) return formats[format] ?? "";
  const text = index === 0 ? "rehearsal" : String(index);
  return text.padEnd(least, "x").slice(0, most);
}

function numberOf(schema: Schema, index: number, whole: number | null): number {
  const step = boundOf(schema.multipleOf) ?? whole;
  const above = boundOf(schema.exclusiveMinimum);
  const below = boundOf(schema.exclusiveMaximum);
  const least = Math.max(boundOf(schema.minimum) ?? -Infinity, above ?? -Infinity);
  const most = Math.min(boundOf(schema.maximum) ?? Infinity, below ?? Infinity);
  if (step !== null && step > 0) {
    const isIn = (value: number) => value !== above && value !== below && value >= least && value <= most;
    const start = least > 0 ? Math.ceil(least / step) : most < 0 ? Math.floor(most / step) : 0;
    const tries = [0, 1, -1].map((by) => (start + by) * step);
    return (tries.find(isIn) ?? start * step) + index * step * (most <= 0 ? -1 : 1) || 0;
  }
  if (least <= 0 && most >= 0 && above !== 0 && below !== 0) return Math.min(index, most);
  if (Number.isFinite(least) && Number.isFinite(most))
    return least === most ? least : least + (most - least) / (2 + index);
  return Number.isFinite(least) ? least + 1 + index : most - 1 - index;
}

function boundOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/**
 * Reads the arguments after a tool's name: a JSON object, `key=value` pairs, or a bare string if the tool requires
 * exactly one. Fills in other required fields. Returns `null` if the arguments cannot be parsed.
 */
export function readArguments(text: string, schema: unknown): JSONObject | null {
  const fitted = fitSchema(schema);
  const required = isRecord(fitted) ? fitted : {};
  if (text === "") return required;
  const given = text.startsWith("{") ? parseJson(text) : (readPairs(text) ?? readOnlyText(text, schema));
  return isRecord(given) ? { ...required, ...given } : null;
}

const pair = /([\w.-]{1,64})=("(?:[^"\\]|\\.){0,4000}"|[^\s"，,]{1,4000})[\s,，]{0,9}/uy;

/** Returns `null` unless the whole text consists of pairs. */
function readPairs(text: string): JSONObject | null {
  const pairs: [string, JSONValue][] = [];
  for (let at = 0; at < text.length; ) {
    pair.lastIndex = at;
    const [whole, name, value] = pair.exec(text) ?? [];
    if (whole === undefined || name === undefined || value === undefined) return null;
    pairs.push([name, parseJson(value) ?? value]);
    at += whole.length;
  }
  return Object.fromEntries(pairs);
}

/** Returns `undefined` unless the tool requires exactly one string. */
function readOnlyText(text: string, schema: unknown): JSONObject | undefined {
  const { properties, required } = asObject(schema);
  const fields = asObject(properties);
  const [name, ...others] = asList(required).length > 0 ? asList(required) : Object.keys(fields);
  if (typeof name !== "string" || others.length > 0 || asObject(fields[name]).type !== "string") return;
  return { [name]: text };
}
