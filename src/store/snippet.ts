import { cutText } from "../core/text.ts";

const width = 160;

/** One line of text around the longest word of the query that stands in it: short words stand everywhere. */
export function snippetOf(text: string, query: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  const folded = line.toLowerCase();
  const places = query
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .toSorted((a, b) => b.length - a.length)
    .map((word) => folded.indexOf(word))
    .filter((place) => place !== -1);
  const [first = 0] = places;
  const from = line.length <= width ? 0 : Math.max(0, first - width / 4);
  const begin = isTrail(line.charCodeAt(from)) ? from + 1 : from;
  const shown = cutText(line.slice(begin), width);
  return `${begin > 0 ? "…" : ""}${shown}${begin + shown.length < line.length ? "…" : ""}`;
}

function isTrail(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
