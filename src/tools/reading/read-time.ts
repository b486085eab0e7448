const iso = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

/** A time as milliseconds since 1970, or as ISO text, in UTC unless it names a zone; `null`: it is neither. */
export function readTime(value: string | number): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? Math.floor(value) : null;
  const [whole, zone] = iso.exec(value.trim()) ?? [];
  if (whole === undefined) return null;
  const text = whole.length > 10 && zone === undefined ? `${whole}Z` : whole;
  const time = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(time) ? null : time;
}
