import type { ContextState } from "../../core/context.ts";
import { initialState } from "../../core/context.ts";
import type { SessionHeader } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Known } from "./index-db.ts";

/**
 * A long session that was never compacted, from its last part alone: what the index knows of the rest stands in a header
 * like that of a cut working set. Pure but for the reading, which the caller does.
 */

export interface TailSource {
  readonly size: number;
  readonly identity: string;
  read(offset: number, length: number): Uint8Array;
}

/** What the tail asks of the index. */
export interface TailIndex {
  known(): Known | null;
  /** Where an entry stands in the log; `null`: not known. */
  placeOf(entryId: string): { readonly position: number; readonly offset: number } | null;
  /** What held behind an entry; `null`: not known. */
  stateBehind(entryId: string): ContextState | null;
}

const lineBreak = 0x0a;

/** The last part of a log as a session of its own, at least so many bytes; `null`: only the whole log will do. */
export function readTail(log: TailSource, index: TailIndex, bytesWanted: number): ParsedSession | null {
  if (log.size <= 2 * bytesWanted) return null;
  const known = index.known();
  if (known === null || !isUsable(known, log, bytesWanted)) return null;
  const { fold, logBytes } = known;
  const wanted = log.size - bytesWanted;
  const from = Math.max(Math.min(wanted, logBytes), fold.chain.offset);
  const found = wholeFrom(log, from, from === fold.chain.offset);
  const session = parseSession(found.bytes);
  const base = baseOf(session, found.offset, logBytes, index);
  if (base === undefined || fold.header === null) return null;
  const state = base === null ? initialState : index.stateBehind(base);
  if (state === null) return null;
  const before = knownLines(session, found.offset, logBytes);
  return withNotes(session, fold.header, known, { base, before, state });
}

function isUsable({ fold, identity, logBytes }: Known, log: TailSource, bytesWanted: number): boolean {
  const isSame = identity === log.identity && logBytes <= log.size;
  const isNear = log.size - logBytes <= 4 * bytesWanted;
  return isSame && isNear && !fold.isOdd && fold.digest.compactions === 0;
}

function wholeFrom(log: TailSource, from: number, isBegin: boolean): { bytes: Uint8Array; offset: number } {
  const bytes = log.read(from, log.size - from);
  const skip = isBegin ? 0 : bytes.indexOf(lineBreak) + 1;
  return { bytes: bytes.subarray(skip), offset: from + skip };
}

/** How many of the tail's lines the index has read. */
function knownLines({ places }: ParsedSession, offset: number, logBytes: number): number {
  return places.filter((place) => offset + place.offset < logBytes).length;
}

/**
 * The parent that the tail leaves out; `undefined`: something in it hangs elsewhere, is damaged, is not as known, or has
 * the id of an entry before it.
 */
function baseOf(
  session: ParsedSession,
  offset: number,
  logBytes: number,
  index: TailIndex,
): string | null | undefined {
  const [first] = session.lines;
  if (first === undefined || isCorrupt(first)) return undefined;
  const seen = new Set<string | null>([first.parentId]);
  const known = knownLines(session, offset, logBytes);
  if (!isAsKnown(session, offset, known, index)) return undefined;
  for (const [place, line] of session.lines.entries()) {
    if (isCorrupt(line) || line.type === "compaction" || line.type === "leaf") return undefined;
    if (!seen.has(line.parentId) || seen.has(line.id)) return undefined;
    if (place >= known && index.placeOf(line.id) !== null) return undefined;
    seen.add(line.id);
  }
  return first.parentId;
}

/** Whether the index has each of the first so many lines where it stands: a repeated one has no position of its own. */
function isAsKnown(session: ParsedSession, offset: number, known: number, index: TailIndex): boolean {
  const positionOf = (at: number) => {
    const [line, place] = [session.lines[at], session.places[at]];
    if (line === undefined || place === undefined || isCorrupt(line)) return null;
    const found = index.placeOf(line.id);
    return found?.offset === offset + place.offset ? found.position : null;
  };
  const [first, last] = [positionOf(0), positionOf(known - 1)];
  return first !== null && last !== null && last - first === known - 1;
}

function withNotes(
  session: ParsedSession,
  own: SessionHeader,
  { fold, logBytes }: Known,
  tail: { base: string | null; before: number; state: ContextState },
): ParsedSession {
  const { base, before, state } = tail;
  const { model, thinkingLevel, system } = state;
  const skein = {
    ...own.skein,
    meta: fold.meta,
    version: fold.version,
    base,
    entries: fold.digest.entries,
    ownEntries: before,
    saidAt: fold.saidAt || null,
    model,
    thinkingLevel,
    ...(system === null ? {} : { system }),
    tailOf: logBytes,
    tailName: fold.name,
  };
  return { ...session, header: { ...own, skein }, diagnostics: [] };
}
