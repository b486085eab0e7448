import type { JSONObject, JSONValue } from "@ai-sdk/provider";

/** The smallest value that fits a JSON Schema, always the same one. What it does not know in a schema it does not mind. */

type Schema = Readonly<Record<string, unknown>>;

/** A schema that asks for itself without an end gets nothing at this depth. */
const mostDepth = 24;
const mostLength = 10_000;

export function fitSchema(schema: unknown): JSONValue {
  return fitted(schema, { root: schema, depth: 0, index: 0 });
}

interface Place {
  readonly root: unknown;
  readonly depth: number;
  /** Which of several like it: those that must differ do. */
  readonly index: number;
}

function fitted(given: unknown, place: Place): JSONValue {
  if (!isObject(given) || place.depth > mostDepth) return null;
  const schema = resolved(given, place);
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

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** With its reference followed, and the first of its choices and all of its parts put in. */
function resolved(given: Schema, place: Place): Schema {
  let schema = given;
  for (let left = mostDepth; left > 0; left--) {
    const { $ref, anyOf, oneOf, allOf, ...rest } = schema;
    const more = [
      typeof $ref === "string" ? referred($ref, place.root) : null,
      Array.isArray(anyOf) ? anyOf[0] : null,
      Array.isArray(oneOf) ? oneOf[0] : null,
      ...(Array.isArray(allOf) ? allOf : []),
    ].filter(isObject);
    if (more.length === 0) return rest;
    schema = more.reduce(merged, rest);
  }
  return {};
}

function merged(one: Schema, other: Schema): Schema {
  const properties = { ...asObject(one.properties), ...asObject(other.properties) };
  const required = [...asList(one.required), ...asList(other.required)];
  return {
    ...one,
    ...other,
    ...(Object.keys(properties).length === 0 ? {} : { properties }),
    ...(required.length === 0 ? {} : { required }),
  };
}

const asObject = (value: unknown): Schema => (isObject(value) ? value : {});
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function referred(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return null;
  const names = reference.slice(1).split("/").slice(1);
  return names.reduce<unknown>((value, name) => {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    return isObject(value) && Object.hasOwn(value, key) ? value[key] : null;
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
    wanted.map((name) => [name, fitted(Object.hasOwn(properties, name) ? properties[name] : {}, inner)]),
  );
  const least = boundOf(schema.minProperties) ?? 0;
  for (const name of Object.keys(properties)) {
    if (named.size >= least) break;
    if (!named.has(name)) named.set(name, fitted(properties[name], inner));
  }
  for (let more = 1; named.size < Math.min(least, mostLength); more++) {
    named.set(`field${more}`, fitted(schema.additionalProperties, inner));
  }
  return Object.fromEntries(named);
}

function arrayOf(schema: Schema, { root, depth }: Place): JSONValue[] {
  const first = asList(schema.prefixItems);
  const least = boundOf(schema.minItems) ?? 0;
  return Array.from({ length: Math.min(least, mostLength) }, (_, index) =>
    fitted(first[index] ?? schema.items, {
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
  const least = Math.min(boundOf(schema.minLength) ?? 0, mostLength);
  const most = boundOf(schema.maxLength) ?? mostLength;
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
