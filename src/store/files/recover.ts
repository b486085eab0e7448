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
import { damagedError, isDamage, isNoDatabase } from "./database.ts";

/** What had to be put right, or could not be. */
export interface Recovery {
  readonly kind:
    | "set_aside"
    | "rebuilt"
    | "salvaged"
    | "claim_changed"
    | "not_taken_in"
    | "not_indexed"
    | "adopted"
    | "not_erased";
  readonly file: string;
  readonly note: string;
  /** The session that a file was adopted as. */
  readonly session?: { readonly userId: string | null; readonly key: string; readonly sessionId: string };
}

/** The log line of a recovery. */
export function describeRecovery({ file, note, session }: Recovery): {
  readonly message: string;
  readonly fields: Readonly<Record<string, string | null>>;
} {
  if (session === undefined) return { message: `${file}: ${note}`, fields: {} };
  const { key: sessionKey, sessionId, userId } = session;
  return { message: "session file adopted", fields: { file, sessionKey, sessionId, userId, note } };
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

/** Opens an index; one that cannot be read is set aside, never overwritten, and rebuilt: everything in it is derived. */
export function openIndex<T>(
  path: string,
  open: (path: string) => T,
  now: number,
  report: (found: Recovery) => void,
): T {
  try {
    return open(path);
  } catch (error) {
    if (error instanceof SkeinError || !isMalformed(error)) throw error;
    setAside(path, now, (error as Error).message, report);
    return open(path);
  }
}

/**
 * Opens `work.db`. If nothing in it can be read, it is set aside and a new one is created. One that is damaged in parts is refused:
 * what can be read of it is for `doctor --fix` to save. `isSalvaged`: that was tried, so what is still damaged is unreadable.
 */
export function openWork<T>(
  path: string,
  open: (path: string) => T,
  now: number,
  report: (found: Recovery) => void,
  isSalvaged: boolean,
): T {
  try {
    return open(path);
  } catch (error) {
    if (isNoDatabase(error) || (isSalvaged && isDamage(error))) {
      setAside(path, now, (error as Error).message, report);
      return open(path);
    }
    throw isDamage(error) ? damagedError(path, (error as Error).message, error) : error;
  }
}

/** Moves a database away with the files beside it. Its new name tells when. */
export function setAside(path: string, now: number, why: string, report: (found: Recovery) => void): void {
  const aside = `${path}.unreadable-${now}`;
  for (const ending of databaseEndings) {
    if (existsSync(path + ending)) renameSync(path + ending, aside + ending);
  }
  report({
    kind: "set_aside",
    file: path,
    note: `it could not be read (${why}) and was set aside as ${aside}`,
  });
}

/** A database and what SQLite keeps beside it. */
export const databaseEndings = ["", "-wal", "-shm"] as const;

function isMalformed(error: unknown): boolean {
  return isDamage(error) || /malformed/i.test(String((error as Error)?.message));
}
