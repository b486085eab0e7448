import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { EntryPage, EntryRange } from "../contract.ts";
import type { IndexDb, IndexedPlace } from "./index-db.ts";
import type { SessionFile } from "./session-file.ts";

/** One entry, read where it stands; where the log is no longer what the index knows, by its id. */
export function entryAt(file: SessionFile, id: string, place: IndexedPlace | null): Entry | null {
  // Another process may have put another file under the name: asking for the tree opens that one.
  const { recent } = file;
  const [line] = place === null ? [] : parseSession(file.readLog(place.offset, place.length)).lines;
  if (line !== undefined && !isCorrupt(line) && line.id === id) return line;
  return recent.entry(id) ?? file.whole.entry(id);
}

/**
 * A page by one read, where the order of the log is that of the branch; `null` where it is not, or the index is behind,
 * or an id is not known: then the whole log has to say.
 */
export function pageByIndex(
  index: IndexDb,
  uid: string,
  file: SessionFile,
  range: EntryRange,
): EntryPage | null {
  const known = index.known(uid);
  if (known === null || known.logBytes !== file.size || known.identity !== file.identity) return null;
  const { fold } = known;
  // Along the branch, the order of the log is right only where each entry hangs on the one before it.
  const first = range.along === "all" ? 0 : fold.chain.position;
  if (range.along === "branch" && (fold.isOdd || fold.tip?.position !== fold.last?.position)) return null;
  const entries = fold.digest.entries;
  // Nothing stands before a chain that begins at a root.
  const isWhole = range.along === "all" || index.parentAt(uid, first) === null;
  const positionOf = (id: string | undefined, without: number) =>
    id === undefined ? without : (index.place(uid, id)?.position ?? null);
  const after = positionOf(range.after, -1);
  const before = positionOf(range.before, entries);
  if (after === null || before === null) return null;
  // What stands before the chain may be on the branch or not.
  if (before < first || (range.after !== undefined && after < first)) return null;
  const lowest = isWhole ? first : 0;
  const from = range.after === undefined ? Math.max(lowest, before - range.limit) : after + 1;
  const to = range.after === undefined ? before : Math.min(before, from + range.limit);
  if (from < first) return null;
  const found = readTogether(file, index.places(uid, from, Math.max(from, to)));
  if (found === null) return null;
  const some = found.length > 0;
  return {
    entries: found,
    hasEarlier: some && (from > first || !isWhole),
    hasLater: some && to < entries,
    leafId: fold.leafId,
  };
}

function readTogether(file: SessionFile, places: readonly IndexedPlace[]): Entry[] | null {
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const bytes = file.readLog(first.offset, last.offset + last.length - first.offset);
  const entries = parseSession(bytes).lines.filter((line): line is Entry => !isCorrupt(line));
  return entries.length === places.length ? entries : null;
}
