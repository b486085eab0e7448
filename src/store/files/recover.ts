import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { SkeinError } from "../../core/errors.ts";

/**
 * What had to be put right, or could not be.
 *
 * @example
 * ```ts
 * import type { Recovery } from "skein/store";
 * const log = ({ kind, file, note }: Recovery) => console.error(`${kind} ${file}: ${note}`);
 * ```
 */
export interface Recovery {
  readonly kind:
    | "set_aside"
    | "rebuilt"
    | "claim_changed"
    | "not_taken_in"
    | "not_indexed"
    | "adopted"
    | "not_erased";
  readonly file: string;
  readonly note: string;
}

/**
 * Removes databases that were set aside and that name one of these sessions or users: what they hold of them cannot be taken out
 * of a damaged file.
 */
export function removeSetAside(
  databases: string,
  names: readonly string[],
  report: (found: Recovery) => void,
): void {
  const wanted = names.map((name) => Buffer.from(name));
  for (const name of readdirSync(databases)) {
    if (!/^(work|index)\.db\./.test(name)) continue;
    const file = join(databases, name);
    if (!lstatSync(file).isFile() || !holdsAny(file, wanted)) continue;
    rmSync(file, { force: true });
    const note = "it held something that was redacted or purged, and was removed";
    report({ kind: "set_aside", file, note });
  }
}

const pieceBytes = 1024 * 1024;

function holdsAny(file: string, wanted: readonly Buffer[]): boolean {
  const overlap = Math.max(0, ...wanted.map(({ length }) => length - 1));
  const piece = Buffer.alloc(pieceBytes + overlap);
  const opened = openSync(file, "r");
  try {
    for (let at = 0; ; at += pieceBytes) {
      const read = readSync(opened, piece, 0, piece.length, at);
      if (wanted.some((each) => piece.subarray(0, read).includes(each))) return true;
      if (read < piece.length) return false;
    }
  } finally {
    closeSync(opened);
  }
}

/** Opens a database; one that cannot be read is set aside, never overwritten, and begun anew. */
export function openOrSetAside<T>(
  path: string,
  open: (path: string) => T,
  now: number,
  report: (found: Recovery) => void,
): T {
  try {
    return open(path);
  } catch (error) {
    if (error instanceof SkeinError || !isDamage(error)) throw error;
    const aside = `${path}.unreadable-${now}`;
    for (const ending of ["", "-wal", "-shm"]) {
      if (existsSync(path + ending)) renameSync(path + ending, aside + ending);
    }
    const note = `it could not be read (${(error as Error).message}) and was set aside as ${aside}`;
    report({ kind: "set_aside", file: path, note });
    return open(path);
  }
}

function isDamage(error: unknown): boolean {
  return /malformed|not a database|corrupt|file is encrypted/i.test(String((error as Error)?.message));
}
