import type { Entry, SessionHeader } from "../../core/entries.ts";
import { encodeEntry, isCorrupt, withParentId } from "../../core/entries.ts";
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
      yield { bytes: bytes.subarray(0, end), isFirst };
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

/** How to handle lines that cannot be read. */
export type DamagedLines = "refuse" | "skip";

/**
 * Yields the lines of a log's entries, without the header. A repeated entry is left out, as in the tree. Depending on
 * the mode, damaged lines throw `unreadable_file` or are skipped. An incomplete last line counts as damaged, because it
 * can be an acknowledged entry that is still in the working set. Returns the number of skipped lines.
 */
export function* readLogLines(
  disk: Disk,
  path: string,
  damaged: DamagedLines,
): Generator<readonly string[], number> {
  const file = disk.openToRead(path);
  if (file === null) return 0;
  const selector = new LineSelector();
  let line = 0;
  try {
    for (const piece of piecesOf(file)) {
      const session = parseSession(piece.bytes);
      checkPiece(path, piece, session, line, damaged);
      yield [...selectLines(selector, piece.bytes, session)];
      line += countLines(piece.bytes);
    }
    return selector.skipped;
  } finally {
    file.close();
  }
}

function* selectLines(
  selector: LineSelector,
  bytes: Buffer,
  { lines, places, diagnostics }: ParsedSession,
): Generator<string> {
  // A parser that has not seen the header mistakes damaged lines at the beginning for lines of another program.
  for (const { code } of diagnostics) if (code === "foreign_line") selector.countDamage();
  for (const [index, entry] of lines.entries()) {
    const { offset = 0, length = 0 } = places[index] ?? {};
    if (isCorrupt(entry)) {
      selector.countDamage();
      continue;
    }
    const line = selector.select(entry, bytes.toString("utf8", offset, offset + length));
    if (line !== null) yield line;
  }
}

/** Chooses the lines to copy. Entries whose parent was on a damaged line are attached as in the tree of the log. */
class LineSelector {
  skipped = 0;
  readonly #seen = new Set<string>();
  /** The entry before the damaged line, by the ID that was on that line. */
  readonly #bridges = new Map<string, string>();
  #previousId: string | null = null;
  #isAfterDamage = false;

  /** Counts a line that is left out. */
  countDamage(): void {
    this.#isAfterDamage = true;
    this.skipped += 1;
  }

  /** Returns `null` for a repeated entry. */
  select(entry: Entry, line: string): string | null {
    const isRepeated = this.#seen.has(entry.id);
    const parentId = isRepeated ? null : this.#bridge(entry.parentId);
    this.#previousId = entry.id;
    if (isRepeated) return null;
    this.#seen.add(entry.id);
    this.#isAfterDamage = false;
    return parentId === null ? line : encodeEntry(withParentId(entry, parentId));
  }

  #bridge(parentId: string | null): string | null {
    if (parentId === null || this.#seen.has(parentId)) return null;
    const known = this.#bridges.get(parentId);
    if (known !== undefined) return known;
    if (this.#isAfterDamage && this.#previousId !== null) this.#bridges.set(parentId, this.#previousId);
    return this.#bridges.get(parentId) ?? null;
  }
}

function countLines(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count += 1;
  return count;
}

function checkPiece(
  path: string,
  { isFirst }: LogPiece,
  { header, lines, diagnostics }: ParsedSession,
  before: number,
  mode: DamagedLines,
): void {
  if (isFirst !== (header !== null))
    throw damagedLog(path, isFirst ? "it has no header" : `it has a second header after line ${before}`);
  const first = mode === "skip" ? undefined : findDamage({ lines, diagnostics });
  if (first !== undefined) throw damagedLog(path, `line ${before + first} is damaged`, skipAdvice);
  if (diagnostics.some(({ code }) => ["migrated", "late_header", "extra_header"].includes(code)))
    throw damagedLog(path, "another program wrote it");
}

/** Returns the number of the first damaged line. */
function findDamage({
  lines,
  diagnostics,
}: Pick<ParsedSession, "lines" | "diagnostics">): number | undefined {
  const foreign = diagnostics.filter(({ code }) => code === "foreign_line");
  return [...foreign, ...lines.filter(isCorrupt)].map(({ line = 1 }) => line)[0];
}

const skipAdvice =
  "Run `skein doctor` for details. Restore the log from a backup, or run the same command again with --skip-damaged-lines";
const restoreAdvice =
  "Run `skein doctor` for details. Restore the file from a backup or remove the session, then run the same command again";

export function damagedLog(file: string, problem: string, advice = restoreAdvice): SkeinError {
  return new SkeinError("unreadable_file", { file, problem, advice });
}
