/** The text without half surrogate pairs, which no server takes; the same string if there are none. */
export function wellFormed(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
}

/** Servers read JSON to a depth of about a hundred. */
export const deepest = 100;

/** The same for all texts and keys in a JSON value; the same value if there are none, or if it is too deep to go out. */
export function wellFormedJson(value: unknown): unknown {
  return isFit(value, 0) || isTooDeep(value) ? value : repaired(value);
}

/** Whether a JSON value nests more than `deepest` levels. Never deeper on the stack than that. */
export function isTooDeep(value: unknown, level = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (level > deepest) return true;
  for (const key in value) if (isTooDeep((value as Record<string, unknown>)[key], level + 1)) return true;
  return false;
}

function isFit(value: unknown, level: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  if (level > deepest) return false;
  for (const key in value) {
    if (!key.isWellFormed() || !isFit((value as Record<string, unknown>)[key], level + 1)) return false;
  }
  return true;
}

function repaired(value: unknown): unknown {
  if (typeof value === "string") return wellFormed(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(repaired);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [wellFormed(key), repaired(inner)]));
}
