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
import { basename, join } from "node:path";
import { SkeinError } from "../../core/errors.ts";
import { isRecord } from "../../core/is-record.ts";
import { damagedError, databaseEndings, isDamage, isNoDatabase } from "./database.ts";
import type { Disk } from "./disk.ts";
import { parseJson, readOwn } from "./disk.ts";
import type { LostRows, Salvage } from "./salvage.ts";

/** A problem that has been repaired or could not be repaired. */
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
  /** The session that was created from an adopted file. */
  readonly session?: { readonly userId: string | null; readonly key: string; readonly sessionId: string };
}

/** Builds the log line for a recovery. */
export function describeRecovery({ file, note, session }: Recovery): {
  readonly message: string;
  readonly fields: Readonly<Record<string, string | null>>;
} {
  if (session === undefined) return { message: `${file}: ${note}`, fields: {} };
  const { key: sessionKey, sessionId, userId } = session;
  return { message: "session file adopted", fields: { file, sessionKey, sessionId, userId, note } };
}

/**
 * Deletes databases that were set aside and that contain one of these names, because content cannot be removed from a
 * damaged file.
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
    const note = "it contained data that has been redacted or purged, so it was removed";
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

/** Opens an index. An unreadable index is set aside instead of being overwritten, and a new one is built. */
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
 * Opens `work.db`. If nothing in it is readable, it is set aside and a new one is created. A partly damaged one is
 * rejected so that `doctor --fix` can salvage it. `isSalvaged` means that a salvage has been attempted, so anything
 * that is still damaged is unreadable.
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

/** Renames a database along with its `-wal` and `-shm` files. */
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

function isMalformed(error: unknown): boolean {
  return isDamage(error) || /malformed/i.test(String((error as Error)?.message));
}

/** Pending work in `work.db`, as last counted. */
export interface WorkCounts {
  /** Input that has been accepted but is not in a log yet. */
  readonly queuedInputs: number;
  /** Runs that have started but have not been answered yet. */
  readonly unfinishedRuns: number;
  /** Does not include the admin token, which has its own file. */
  readonly tokens: number;
}

/** Stored next to `work.db` so that the next start can report what was lost with it. */
export const workCountsName = "work-counts.json";

/** Returns the last count and its time, or `null` if there is no readable count. */
export function readWorkCounts(disk: Disk, path: string): (WorkCounts & { readonly at: number }) | null {
  const bytes = readOwn(disk, path);
  const at = disk.stat(path)?.modifiedAt;
  const value = bytes === null ? null : parseJson(bytes);
  if (!isRecord(value) || at === undefined) return null;
  const counts = {
    queuedInputs: Number(value.queuedInputs),
    unfinishedRuns: Number(value.unfinishedRuns),
    tokens: Number(value.tokens),
  };
  return Object.values(counts).every(Number.isSafeInteger) ? { ...counts, at } : null;
}

/** Describes the complete loss of `work.db`. */
export function describeRebuild(
  how: "missing" | "unreadable",
  sessions: number,
  counts: ReturnType<typeof readWorkCounts>,
): string {
  const from = `rebuilt from ${amount(sessions, "session log")}`;
  const begun =
    how === "missing" ? `work.db was missing and was ${from}` : `work.db could not be read and was ${from}`;
  if (counts === null)
    return `${begun}; queued inputs, unfinished runs and all tokens except the admin token are lost; how many is unknown`;
  const { queuedInputs, unfinishedRuns, tokens, at } = counts;
  const gone = [
    amount(queuedInputs, "queued input"),
    amount(unfinishedRuns, "unfinished run"),
    amount(tokens, "token"),
  ];
  return `${begun}; lost: ${gone[0]}, ${gone[1]} and ${gone[2]}, as last counted at ${new Date(at).toISOString()}`;
}

/** Describes the partial loss of `work.db`. */
export function describeSalvage({ problem, aside, saved, lost }: Salvage): string {
  const what = lost.length === 0 ? "nothing is lost" : `lost: ${lost.map(lostText).join(", ")}`;
  return `work.db was damaged (${problem}); rows saved to a new one: ${saved}; ${what}; the damaged file was kept as ${basename(aside)}`;
}

const shownAs: Readonly<Record<string, string>> = {
  gateway_tokens: "token",
  runs: "run",
  run_inputs: "input",
  sessions: "session",
  outbox: "outgoing message",
};

function lostText({ table, rows }: LostRows): string {
  const name = shownAs[table];
  if (rows === null)
    return name === undefined ? `an unknown number of rows in ${table}` : `an unknown number of ${name}s`;
  return name === undefined ? `${amount(rows, "row")} in ${table}` : amount(rows, name);
}

function amount(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}
