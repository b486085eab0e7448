import type { SessionHeader } from "../../core/entries.ts";
import { isCorrupt } from "../../core/entries.ts";
import { SkeinError } from "../../core/errors.ts";
import type { ParsedSession } from "../../core/parse-session.ts";
import { parseSession } from "../../core/parse-session.ts";
import type { Disk, DiskFile } from "./disk.ts";

/** Reads a log in pieces, so that a log of any size needs little memory. */

const pieceBytes = 1024 * 1024;
const lineFeed = 0x0a;

/** A piece of a log that consists of whole lines. */
interface LogPiece {
  readonly bytes: Buffer;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

function* piecesOf(file: DiskFile): Generator<LogPiece> {
  let rest = Buffer.alloc(0);
  for (let at = 0, isFirst = true; ; ) {
    const read = file.read(at, pieceBytes);
    at += read.length;
    const isLast = read.length < pieceBytes;
    const bytes = Buffer.concat([rest, read]);
    const end = isLast ? bytes.length : bytes.lastIndexOf(lineFeed) + 1;
    rest = bytes.subarray(end);
    if (end > 0) {
      yield { bytes: bytes.subarray(0, end), isFirst, isLast };
      isFirst = false;
    }
    if (isLast) return;
  }
}

/** Returns the header of a log, or `null` if there is no such file. */
export function readLogHeader(disk: Disk, path: string): SessionHeader | null {
  const file = disk.openToRead(path);
  if (file === null) return null;
  try {
    for (const { bytes } of piecesOf(file)) {
      const end = bytes.indexOf(lineFeed);
      const { header } = parseSession(end === -1 ? bytes : bytes.subarray(0, end + 1));
      if (header !== null) return header;
      break;
    }
    throw damagedLog(path, "it does not start with a header");
  } finally {
    file.close();
  }
}

/**
 * Yields the lines of a log's entries, without the header. A repeated entry is skipped, as in the tree. So is an
 * incomplete last line, because it was never acknowledged. Throws `unreadable_file` for any other damaged line.
 */
export function* readLogLines(disk: Disk, path: string): Generator<readonly string[]> {
  const file = disk.openToRead(path);
  if (file === null) return;
  const seen = new Set<string>();
  let line = 0;
  try {
    for (const piece of piecesOf(file)) {
      const session = parseSession(piece.bytes);
      checkPiece(path, piece, session, line);
      const lines: string[] = [];
      for (const [index, entry] of session.lines.entries()) {
        const place = session.places[index];
        if (isCorrupt(entry) || place === undefined || seen.has(entry.id)) continue;
        seen.add(entry.id);
        lines.push(piece.bytes.toString("utf8", place.offset, place.offset + place.length));
      }
      yield lines;
      line += countLines(piece.bytes);
    }
  } finally {
    file.close();
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count += 1;
  return count;
}

function checkPiece(
  path: string,
  { isFirst, isLast }: LogPiece,
  session: ParsedSession,
  before: number,
): void {
  if (isFirst !== (session.header !== null))
    throw damagedLog(path, isFirst ? "it has no header" : `it has a second header after line ${before}`);
  const damaged = session.lines.filter(isCorrupt).filter(({ reason }) => reason !== "torn" || !isLast);
  const foreign = session.diagnostics.filter(
    ({ code }) => code === "foreign_line" || code === "extra_header",
  );
  const [first] = [...damaged, ...foreign].map(({ line = 1 }) => before + line);
  if (first !== undefined) throw damagedLog(path, `line ${first} is damaged`);
  if (session.diagnostics.some(({ code }) => code === "migrated" || code === "late_header"))
    throw damagedLog(path, "another program wrote it");
}

export function damagedLog(file: string, problem: string): SkeinError {
  const advice =
    "Run `skein doctor` for details. Restore the log from a backup or remove the session, then run the same command again";
  return new SkeinError("unreadable_file", { file, problem, advice });
}
