import type { Entry } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { EntryPage, EntryRange } from "../contract.ts";
import type { IndexDb, IndexedPlace, Known, NewEntry } from "./index-db.ts";
import type { SessionFile } from "./session-file.ts";
import { recordOf } from "./session-record.ts";
import type { SessionRow } from "./work-db.ts";

/** Brings the index up with a session's log, reading only what is new in it. */
export function indexSession(index: IndexDb, row: SessionRow, file: SessionFile): void {
  index.exclusively(() => update(index, row, file));
}

function update(index: IndexDb, row: SessionRow, file: SessionFile): void {
  const record = recordOf(row, file);
  const { size } = file;
  const before = index.known(row.uid);
  // A log that is shorter than what is known of it was rewritten, on purpose or by a restore: it is taken in anew.
  const isAnew = before !== null && before.logBytes > size;
  if (isAnew) index.remove(row.uid);
  const known: Known =
    before === null || isAnew ? { logBytes: 0, entries: 0, isLinear: true, lastId: null } : before;
  const found = newEntries(index, row.uid, file.readLog(known.logBytes), known);
  index.put(record, { ...found.known, logBytes: size }, found.entries);
}

/** The entries in the bytes behind what is known; repeated ones are passed over, as the tree does. */
function newEntries(
  index: IndexDb,
  uid: string,
  bytes: Uint8Array,
  known: Known,
): { known: Known; entries: NewEntry[] } {
  const { lines, places } = parseSession(bytes);
  const entries: NewEntry[] = [];
  const seen = new Set<string>();
  let { isLinear, lastId } = known;
  for (const [index_, line] of lines.entries()) {
    const place = places[index_];
    if (isCorrupt(line) || place === undefined) {
      isLinear = false;
      continue;
    }
    if (seen.has(line.id) || index.place(uid, line.id) !== null) {
      isLinear = false;
      continue;
    }
    seen.add(line.id);
    if (line.parentId !== lastId) isLinear = false;
    lastId = line.id;
    const position = known.entries + entries.length;
    entries.push({ entry: line, position, offset: known.logBytes + place.offset, length: place.length });
  }
  return { known: { ...known, entries: known.entries + entries.length, isLinear, lastId }, entries };
}

/** One entry, read where it stands. */
export function entryAt(file: SessionFile, { offset, length }: IndexedPlace): Entry | null {
  const [line] = parseSession(file.readLog(offset, length)).lines;
  return line === undefined || isCorrupt(line) ? null : line;
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
  if (known === null || known.logBytes !== file.size || !(known.isLinear || range.along === "all"))
    return null;
  const positionOf = (id: string | undefined, without: number) =>
    id === undefined ? without : (index.place(uid, id)?.position ?? null);
  const after = positionOf(range.after, -1);
  const before = positionOf(range.before, known.entries);
  if (after === null || before === null) return null;
  const from = range.after === undefined ? Math.max(after + 1, before - range.limit) : after + 1;
  const to = range.after === undefined ? before : Math.min(before, from + range.limit);
  const places = index.places(uid, from, Math.max(from, to));
  const entries = readTogether(file, places);
  if (entries === null) return null;
  const some = entries.length > 0;
  return {
    entries,
    hasEarlier: some && from > 0,
    hasLater: some && to < known.entries,
    leafId: file.recent.leafId,
  };
}

function readTogether(file: SessionFile, places: readonly IndexedPlace[]): Entry[] | null {
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const bytes = file.readLog(first.offset, last.offset + last.length - first.offset);
  const entries = parseSession(bytes).lines.filter((line): line is Entry => !isCorrupt(line));
  const wanted = new Set(places.map(({ offset }) => offset));
  return entries.length === wanted.size ? entries : null;
}
