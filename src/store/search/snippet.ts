import { cutText } from "../../core/text.ts";
import type { QueryTerms } from "./query-terms.ts";
import { queryTerms } from "./query-terms.ts";
import { placedWords } from "./words.ts";

/** The part of a hit's text that is shown, and the matched words in it. */

const width = 160;
const before = width / 4;
/** The best place is looked for only in this much of a text. */
const mostRead = 50_000;

/** Returns one line of text, taken from where the most distinct words of the query are close together. */
export function snippetOf(text: string, terms: QueryTerms): string {
  const line = text.replace(/\s+/g, " ").trim();
  const from = line.length <= width ? 0 : Math.max(0, bestPlace(line.slice(0, mostRead), terms) - before);
  const begin = from === 0 ? 0 : wordStart(line, from);
  const shown = cutText(line.slice(begin), width);
  return `${begin > 0 ? "…" : ""}${shown}${begin + shown.length < line.length ? "…" : ""}`;
}

/** Returns where the next word begins, if one begins before the match. */
function wordStart(line: string, from: number): number {
  const space = line.indexOf(" ", from - 1);
  if (space !== -1 && space < from + before) return space + 1;
  return isTrail(line.charCodeAt(from)) ? from + 1 : from;
}

/** Returns the start of the first match in the part with the most distinct words. */
function bestPlace(line: string, { terms }: QueryTerms): number {
  const wanted = new Set(terms.map(({ word }) => word));
  const found = [...placedWords(line)].filter(({ word }) => wanted.has(word));
  let [best, most] = [0, 0];
  for (const [at, { start }] of found.entries()) {
    const seen = new Set<string>();
    for (let next = at; (found[next]?.end ?? Number.POSITIVE_INFINITY) <= start + width - before; next++)
      seen.add(found[next]?.word ?? "");
    if (seen.size <= most) continue;
    [best, most] = [start, seen.size];
  }
  return best;
}

/** Returns the start and end of each query word in a string, without overlaps. */
export function matchedRanges(text: string, query: string): [start: number, end: number][] {
  const wanted = new Set(queryTerms(query).terms.map(({ word }) => word));
  const found: [number, number][] = [];
  const places = [...placedWords(text)].filter(({ word }) => wanted.has(word));
  for (const { start, end } of places.toSorted((one, other) => one.start - other.start)) {
    const last = found.at(-1);
    if (last === undefined || start > last[1]) found.push([start, end]);
    else last[1] = Math.max(last[1], end);
  }
  return found;
}

function isTrail(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
