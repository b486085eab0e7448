import type { Entry } from "../core/entries.ts";
import { SkeinError } from "../core/errors.ts";
import type { EntryPage, EntryRange } from "./contract.ts";
import { entryLimit } from "./limits.ts";

/** A page of a list of entries: with `after` the oldest behind it, else the newest. */
export function pageOf(entries: readonly Entry[], leafId: string | null, range: EntryRange): EntryPage {
  const limit = entryLimit(range.limit);
  const from = range.after === undefined ? 0 : placeOf(entries, range.after) + 1;
  const to = range.before === undefined ? entries.length : placeOf(entries, range.before);
  const end = range.after === undefined ? to : Math.min(to, from + limit);
  const start = range.after === undefined ? Math.max(from, to - limit) : from;
  const page = entries.slice(start, Math.max(start, end));
  return {
    entries: page,
    hasEarlier: start > 0 && page.length > 0,
    hasLater: end < entries.length && page.length > 0,
    leafId,
  };
}

function placeOf(entries: readonly Entry[], id: string): number {
  const place = entries.findIndex((entry) => entry.id === id);
  if (place !== -1) return place;
  throw new SkeinError("not_found", {
    what: "Entry",
    name: id,
    advice: "Take the id of an entry of this session",
  });
}
