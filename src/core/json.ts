import { isRecord } from "./is-record.ts";

interface RawNumber {
  readonly rawJSON: string;
}

/** These functions are standard, but TypeScript's library lacks them. */
const rawJson = JSON as unknown as {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(text: string, revive: (key: string, value: unknown, at: { source?: string }) => unknown): unknown;
};

/**
 * Only numbers like these can exceed the precision of a double. A match inside a string merely causes a second parse.
 */
const longNumber = /[[:,]\s*-?(?:\d[\d.]{15}|\d[\d.]*[eE])/;
const idNames = new Set(["id", "parentId", "targetId", "firstKeptEntryId", "fromId", "toolCallId"]);

/** The value, and the same value with raw numbers where a double is not exact, or `null` if every number is exact. */
interface ParsedJson {
  readonly value: unknown;
  readonly exact: unknown;
}

/** Throws like `JSON.parse`. Numeric IDs that are too long for a double become strings in both values. */
export function parseExactly(text: string): ParsedJson {
  if (!longNumber.test(text)) return { value: JSON.parse(text), exact: null };
  let isExact = true;
  const read = (asRaw: boolean) =>
    rawJson.parse(text, (key, value, { source = "" }) => {
      if (typeof value !== "number" || holds(value, source)) return value;
      if (idNames.has(key)) return source;
      isExact = false;
      return asRaw ? rawJson.rawJSON(source) : value;
    });
  const value = read(false);
  return { value, exact: isExact ? null : read(true) };
}

function holds(value: number, source: string): boolean {
  return Number.isFinite(value) && digitsOf(String(value)) === digitsOf(source);
}

/** Returns the significant digits and the exponent, which do not depend on how the number is written. */
function digitsOf(source: string): string {
  const [, sign = "", whole = "", part = "", power = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? [];
  const digits = `${whole}${part}`.replace(/^0+/, "");
  if (digits === "") return "0";
  const zeros = whole.length + part.length - digits.length;
  return `${sign}${digits.replace(/0+$/, "")}e${whole.length - zeros + Number(power)}`;
}

/** Returns the value with the raw numbers from `exact` wherever the two agree, for JSON.stringify. */
export function withExactNumbers(value: unknown, exact: unknown): unknown {
  if (typeof value === "number") {
    return rawJson.isRawJSON(exact) && Object.is(Number(exact.rawJSON), value) ? exact : value;
  }
  if (typeof value !== "object" || value === null || typeof exact !== "object" || exact === null)
    return value;
  if (Array.isArray(value)) return value.map((item, at) => withExactNumbers(item, Reflect.get(exact, at)));
  const field = ([name, each]: [string, unknown]) => [name, withExactNumbers(each, Reflect.get(exact, name))];
  return Object.fromEntries(Object.entries(value).map(field));
}

/**
 * Like `JSON.stringify`, but supports deeply nested values that overflow the stack in some versions of Node. Only for
 * values that `JSON.parse` can return.
 */
export function stringifyJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError && /call stack/.test(error.message)) return stringifyDeep(value);
    throw error;
  }
}

export function stringifyDeep(value: unknown): string {
  const parts: string[] = [];
  /** Text to write unchanged and values to expand, in reverse order. */
  const waiting: ({ text: string } | { value: unknown })[] = [{ value }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if ("text" in next) parts.push(next.text);
    else if (typeof next.value !== "object" || next.value === null) parts.push(JSON.stringify(next.value));
    else {
      const isArray = Array.isArray(next.value);
      const fields = Object.entries(next.value).filter(([, each]) => each !== undefined);
      waiting.push({ text: isArray ? "]" : "}" });
      for (const [index, [key, each]] of fields.toReversed().entries()) {
        const comma = index === fields.length - 1 ? "" : ",";
        waiting.push({ value: each }, { text: isArray ? comma : `${comma}${JSON.stringify(key)}:` });
      }
      parts.push(isArray ? "[" : "{");
    }
  }
  return parts.join("");
}

/** Returns the same text for equal values, regardless of field order. */
export function canonicalJson(value: unknown): string {
  return stringifyJson(sortFields(value)) ?? "null";
}

/** Values nested deeper than this are compared without sorting their fields. */
const maxSortDepth = 100;

function sortFields(value: unknown, depth = 0): unknown {
  if (depth > maxSortDepth) return value;
  if (Array.isArray(value)) return value.map((each) => sortFields(each, depth + 1));
  if (!isRecord(value)) return value;
  // Serialized as pairs, because an object would move numeric names to the front and drop `__proto__`.
  const names = Object.keys(value).toSorted();
  return { fields: names.map((name) => [name, sortFields(value[name], depth + 1)]) };
}

/**
 * Returns the value of an own property. Inherited ones are ignored, because a name from outside could be "constructor".
 */
export function own<T>(table: { readonly [name: string]: T }, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
