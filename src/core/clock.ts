/** The current time in milliseconds since 1970. Injected so that tests can control it. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

const iso = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

/**
 * Parses milliseconds since 1970 or an ISO 8601 string, which is in UTC unless it specifies a time zone. Returns `null`
 * for anything else.
 */
export function readTime(value: string | number): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? Math.floor(value) : null;
  const [whole, zone] = iso.exec(value.trim()) ?? [];
  if (whole === undefined) return null;
  const text = whole.length > 10 && zone === undefined ? `${whole}Z` : whole;
  const time = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(time) ? null : time;
}
