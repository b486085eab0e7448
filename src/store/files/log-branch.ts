import type { Entry, SessionHeader } from "../../core/entries.ts";
import { isBookkeeping, isCorrupt } from "../../core/entries.ts";
import { parseSession, parsingSession } from "../../core/parse-session.ts";
import type { Steps } from "../../core/slices.ts";
import type { SessionTree } from "../../core/tree.ts";
import type { SessionMeta } from "../contract.ts";
import type { DiskFile } from "./disk.ts";
import type { IndexState } from "./index-db.ts";
import type { LogFile } from "./log-file.ts";
import type { EntryLookup } from "./session-view.ts";
import { readingLog } from "./session-view.ts";

/** Copies a branch from one log to another without parsing its lines. */

/** A branch whose entries are the first lines of a log. */
export interface LogBranch {
  readonly identity: string;
  /** The index data of the log, and its state at the time the branch was found. */
  readonly lookup: EntryLookup;
  readonly fold: IndexState;
  readonly offset: number;
  readonly bytes: number;
  readonly entries: number;
  readonly leafId: string;
  /** The time of the leaf. */
  readonly saidAt: number;
}

/** The number of index rows that are read in one step, and the cost of a row, expressed in bytes read. */
const rowsInStep = 10_000;
const rowBytes = 64;

/**
 * Returns `null` if the log is damaged or has several branches, or if the entry is not in the index. Also returns
 * `null` if later lines set a label or the name, because a fork copies the session's current labels and name.
 */
export function* findingBranch(log: LogFile, lookup: EntryLookup, entryId: string): Steps<LogBranch | null> {
  const { size, identity } = log.stat();
  const known = lookup.known();
  const place = lookup.placeOf(entryId);
  if (known === null || place === null || known.identity !== identity || known.logBytes > size) return null;
  if (known.fold.isOdd || known.fold.chain.position > 0) return null;
  const leaf = parseSession(log.read(place.offset, place.length)).lines[0];
  if (leaf === undefined || isCorrupt(leaf) || leaf.id !== entryId || isBookkeeping(leaf)) return null;
  const saidAt = Date.parse(leaf.timestamp);
  const entries = place.position + 1;
  const end = place.offset + place.length + 1;
  const { offset, bytes } = yield* measureLines(lookup, entries);
  // The index contains no repeated entries, blank lines or late headers.
  if (!(saidAt > 0) || end > known.logBytes || offset + bytes !== end) return null;
  const later = yield* parsingSession(yield* readingLog(log, end, size));
  if (later.lines.some((line) => !isCorrupt(line) && isRepeatedByFork(line))) return null;
  return { identity, lookup, fold: known.fold, offset, bytes, entries, leafId: entryId, saidAt };
}

function* measureLines(lookup: EntryLookup, entries: number): Steps<{ offset: number; bytes: number }> {
  const { offset } = lookup.spanOf(0, 1);
  let bytes = 0;
  for (let from = 0; from < entries; from += rowsInStep) {
    bytes += lookup.spanOf(from, Math.min(entries, from + rowsInStep)).bytes;
    yield rowsInStep * rowBytes;
  }
  return { offset, bytes };
}

function isRepeatedByFork({ type }: Entry): boolean {
  return type === "label" || type === "session_info";
}

const partBytes = 256 * 1024;

/** Yields a new header and the lines of a branch. Each part is valid only until the next one is requested. */
export function* readCopy(header: SessionHeader, log: DiskFile, branch: LogBranch): Generator<Uint8Array> {
  yield encodeHeader(header);
  const buffer = Buffer.allocUnsafe(partBytes);
  const end = branch.offset + branch.bytes;
  for (let at = branch.offset; at < end; ) {
    const part = log.readInto(buffer.subarray(0, end - at), at);
    if (part.length === 0) throw new Error("the log that is being copied has become shorter");
    yield part;
    at += part.length;
  }
}

export function encodeHeader(header: SessionHeader): Uint8Array {
  return Buffer.from(`${JSON.stringify(header)}\n`);
}

export function* encodingTree(tree: SessionTree): Steps<Uint8Array> {
  const lines: Buffer[] = [];
  for (const line of tree.encodeLines()) {
    lines.push(Buffer.from(line));
    yield line.length;
  }
  return Buffer.concat(lines);
}

/** A new session whose log contains a copied branch. */
interface BranchCopy {
  readonly header: SessionHeader;
  readonly meta: SessionMeta;
  /** Returns the identity of the new log. */
  identity(): string;
}

/**
 * The index data of a copied branch. Until the copy is indexed, the data comes from the source, unless the source's log
 * has been replaced.
 */
export function copiedLookup(own: EntryLookup, branch: LogBranch, copy: BranchCopy): EntryLookup {
  const { lookup, entries, saidAt, leafId } = branch;
  const { header, meta } = copy;
  const start = encodeHeader(header).length;
  const moveBy = start - branch.offset;
  let identity: string | null = null;
  const copied: Omit<EntryLookup, "grew"> = {
    known: () => {
      identity ??= copy.identity();
      if (lookup.known()?.identity !== branch.identity) return null;
      const digest = { ...branch.fold.digest, entries };
      const fold = { ...branch.fold, header, meta, version: 1, saidAt, leafId, digest };
      return { logBytes: start + branch.bytes, identity, fold };
    },
    placeOf: (entryId) => {
      const place = lookup.placeOf(entryId);
      if (place === null || place.position >= entries) return null;
      return { ...place, offset: place.offset + moveBy };
    },
    spanOf: (from, to) => {
      const { offset, bytes } = lookup.spanOf(from, to);
      return { offset: offset + moveBy, bytes };
    },
    stateBehind: (entryId) => lookup.stateBehind(entryId),
  };
  const current = () => (own.known() === null ? copied : own);
  return {
    known: () => current().known(),
    placeOf: (entryId) => current().placeOf(entryId),
    spanOf: (from, to) => current().spanOf(from, to),
    stateBehind: (entryId) => current().stateBehind(entryId),
    grew: () => own.grew(),
  };
}
