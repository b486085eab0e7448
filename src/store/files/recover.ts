import { existsSync, renameSync } from "node:fs";
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
  readonly kind: "set_aside" | "rebuilt" | "claim_changed" | "not_taken_in" | "not_indexed" | "adopted";
  readonly file: string;
  readonly note: string;
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
