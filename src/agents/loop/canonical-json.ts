import { stringifyJson } from "../../core/json.ts";
import { isRecord } from "../../core/shape.ts";

/** The same text for the same value, in whatever order its fields were written. */
export function canonicalJson(value: unknown): string {
  return stringifyJson(sorted(value)) ?? "null";
}

/** Deeper than this nobody compares: what lies there is taken as it was written. */
const deepest = 100;

function sorted(value: unknown, depth = 0): unknown {
  if (depth > deepest) return value;
  if (Array.isArray(value)) return value.map((each) => sorted(each, depth + 1));
  if (!isRecord(value)) return value;
  // As pairs: an object would put names that are numbers first, and `__proto__` nowhere.
  const fields = Object.keys(value)
    .toSorted()
    .map((name) => [name, sorted(value[name], depth + 1)]);
  return { fields };
}
