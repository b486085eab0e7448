import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { parseSession, parsingSession } from "../../core/parse-session.ts";
import { Slices } from "../../core/slices.ts";
import type { EntryPage, EntryRange } from "../contract.ts";
import type { IndexDb, IndexedPlace } from "./index-db.ts";
import type { SessionFile } from "./session-file.ts";

/** One entry, read where it stands; where the log is no longer what the index knows, by its id. */
export async function entryAt(
  file: SessionFile,
  id: string,
  place: IndexedPlace | null,
): Promise<Entry | null> {
  // Another process may have put another file under the name: asking for the tree opens that one.
  const loaded = file.recent.entry(id);
  if (loaded !== null) return loaded;
  const [line] = place === null ? [] : parseSession(file.readLog(place.offset, place.length)).lines;
  if (line !== undefined && !isCorrupt(line) && line.id === id) return line;
  await file.widenedFor([id]);
  return file.entry(id);
}

/**
 * A page by one read, where the order of the log is that of the branch; `null` where it is not, or the index is behind,
 * or an id is not known: then the whole log has to say.
 */
export async function pageByIndex(
  index: IndexDb,
  uid: string,
  file: SessionFile,
  range: EntryRange,
): Promise<EntryPage | null> {
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
  const wanted = index.places(uid, from, Math.max(from, to));
  const places = within(wanted, range.after !== undefined, range.bytes);
  const found = await readTogether(file, places);
  if (found === null) return null;
  const some = found.length > 0;
  const isCut = places.length < wanted.length;
  return {
    entries: found,
    hasEarlier: some && (from > first || !isWhole || (isCut && range.after === undefined)),
    hasLater: some && (to < entries || (isCut && range.after !== undefined)),
    leafId: fold.leafId,
  };
}

/** As many as there is room for, from the end that was asked for; at least one. */
function within(
  places: readonly IndexedPlace[],
  forward: boolean,
  bytes = Number.POSITIVE_INFINITY,
): readonly IndexedPlace[] {
  let [count, length] = [0, 0];
  for (const place of forward ? places : places.toReversed()) {
    length += place.length;
    if (length > bytes && count > 0) break;
    count += 1;
  }
  return forward ? places.slice(0, count) : places.slice(places.length - count);
}

async function readTogether(file: SessionFile, places: readonly IndexedPlace[]): Promise<Entry[] | null> {
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const bytes = file.readLog(first.offset, last.offset + last.length - first.offset);
  const { lines } = await new Slices().run(parsingSession(bytes));
  const entries = lines.filter((line): line is Entry => !isCorrupt(line));
  return entries.length === places.length ? entries : null;
}
