/** The text without half surrogate pairs, which no server takes; the same string if there are none. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Servers read JSON to a depth of about a hundred. */
export const deepest = 100;

/** The same for all texts and keys in a JSON value; the same value if there are none, or if it is too deep to go out. */
export function wellFormedJson(value: unknown): unknown {
  return isTooDeep(value) ? value : repaired(value);
}

/** Whether a JSON value nests more than `deepest` levels; in one pass, without recursion. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return true;
    level = level.flatMap((each) =>
      typeof each === "object" && each !== null
        ? Object.values(each).filter((inner) => typeof inner === "object" && inner !== null)
        : [],
    );
  }
  return false;
}

function repaired(value: unknown): unknown {
  if (typeof value === "string") return wellFormed(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(repaired);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const fields = Object.entries(value).map(([key, inner]) => [wellFormed(key), repaired(inner)] as const);
  const same = fields.every(([key, inner]) => (value as Record<string, unknown>)[key] === inner);
  return same ? value : Object.fromEntries(fields);
}
