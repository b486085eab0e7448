import { existsSync, renameSync } from "node:fs";
import { SkeinError } from "../../core/errors.ts";
import { damaged, isDamage, isNoDatabase } from "./database.ts";

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
    | "salvaged"
    | "claim_changed"
    | "not_taken_in"
    | "not_indexed"
    | "adopted";
  readonly file: string;
  readonly note: string;
}

/** Opens an index; one that cannot be read is set aside, never overwritten, and begun anew: it holds nothing of its own. */
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
 * Opens `work.db`. One of which nothing can be read is set aside, and begun anew. One that is damaged in parts is refused:
 * what can be read of it is for `doctor --fix` to save.
 */
export function openWork<T>(
  path: string,
  open: (path: string) => T,
  now: number,
  report: (found: Recovery) => void,
): T {
  try {
    return open(path);
  } catch (error) {
    if (isNoDatabase(error)) {
      setAside(path, now, (error as Error).message, report);
      return open(path);
    }
    throw isDamage(error) ? damaged(path, (error as Error).message, error) : error;
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
