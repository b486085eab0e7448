import { closeSync, openSync, statfsSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { SkeinError } from "../../core/errors.ts";

/** Looked up and not imported: an import of a module that Node 20 lacks fails before the package can say which Node it needs. */
export const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
export type DatabaseSync = InstanceType<typeof DatabaseSync>;

/** A database and what SQLite keeps beside it. */
export const databaseEndings = ["", "-wal", "-shm"] as const;

/** A database that lives as long as it is open. */
export const inMemory = ":memory:";

/** Primary result codes of SQLite. */
const [busy, ioError, corrupt, diskFull, notADatabase] = [5, 10, 11, 13, 26];
const defaultWaitMs = 10_000;
/** The same once another process has kept the file locked for all that time, until it lets go. */
const lockedWaitMs = 100;
const scrubWaitMs = 1000;
const openRetryMs = 5;

interface DatabaseOptions {
  /** How long a statement waits for other connections. Nothing else in the process runs meanwhile. */
  readonly waitMs?: number;
  /** Refuses a database whose pages are damaged, like one that cannot be opened at all. */
  readonly verify?: boolean;
  /**
   * Refuses to write to a file that is damaged or no longer at its path: damage spreads with every write, and a commit into a
   * file that was moved or deleted is lost.
   */
  readonly isPinned?: boolean;
}

/** What all connections of this thread know about one file, for as long as one of them is open. */
interface SharedFile {
  connections: number;
  damage: string | null;
  /** Whether the last change found it locked by another process. */
  isLocked: boolean;
}

/** By device and inode, which no other file gets while this one is open. */
const sharedFiles = new Map<string, SharedFile>();

/** Records damage that another thread found, if this thread has the file open. */
export function noteDamage(path: string, damage: string): void {
  const file = sharedFiles.get(fileIdentity(path) ?? "");
  if (file !== undefined) file.damage ??= damage;
}

/** A prepared statement whose errors say what happened to the database. */
class Statement {
  readonly #statement: StatementSync;
  readonly #explain: (error: unknown) => unknown;

  constructor(statement: StatementSync, explain: (error: unknown) => unknown) {
    this.#statement = statement;
    this.#explain = explain;
  }

  all(...values: SQLInputValue[]): Record<string, unknown>[] {
    try {
      return this.#statement.all(...values);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  get(...values: SQLInputValue[]): Record<string, unknown> | undefined {
    try {
      return this.#statement.get(...values);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** The last row id may be one inside a word index, which does not fit a number. */
  run(...values: SQLInputValue[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  } {
    try {
      this.#statement.setReadBigInts(true);
      return this.#statement.run(...values);
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** The first column of the first row. A row as a list takes half the time of one with names. */
  number(): number {
    try {
      const row = this.#statement.get() as unknown as readonly unknown[];
      return Number(row[0]);
    } catch (error) {
      throw this.#explain(error);
    }
  }
}

/** A SQLite database with its migrations done and its statements kept. */
export class Database {
  readonly #path: string;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();
  readonly #byOthers: Statement;
  readonly #byUs: Statement;
  readonly #shared: SharedFile;
  /** `null`: in memory. */
  readonly #identity: string | null;
  readonly #isPinned: boolean;
  readonly #explain = (error: unknown) => this.#explained(error);
  readonly #longestWaitMs: number;
  #waitMs: number;
  #isClosed = false;

  constructor(
    path: string,
    pragmas: string,
    migrations: readonly string[],
    { verify = false, isPinned = false, waitMs = defaultWaitMs }: DatabaseOptions = {},
  ) {
    this.#path = path;
    this.#longestWaitMs = waitMs;
    this.#waitMs = waitMs;
    if (path !== inMemory) createOwnerOnly(path);
    this.#db = new DatabaseSync(path, { timeout: waitMs });
    try {
      execWhenFree(this.#db, pragmas, waitMs);
      migrate(this.#db, path, migrations);
      const found = verify ? this.problem() : null;
      if (found !== null) throw new Error(`the database is malformed: ${found}`);
      this.#byOthers = this.#number("PRAGMA data_version");
      this.#byUs = this.#number("SELECT total_changes()");
    } catch (error) {
      this.#db.close();
      throw isBusy(error) ? lockedError(path, error) : (diskError(path, error) ?? error);
    }
    this.#isPinned = isPinned;
    this.#identity = path === inMemory ? null : fileIdentity(path);
    this.#shared = sharedFiles.get(this.#identity ?? "") ?? {
      connections: 0,
      damage: null,
      isLocked: false,
    };
    this.#shared.connections += 1;
    if (this.#identity !== null) sharedFiles.set(this.#identity, this.#shared);
  }

  /** What is read now may be taken back. */
  get isInTransaction(): boolean {
    return this.#db.isTransaction;
  }

  /** Device and inode of its file; empty: it is in memory. */
  get identity(): string {
    return this.#identity ?? "";
  }

  /** What a statement of any connection of this thread found damaged; `null`: nothing so far. */
  get damage(): string | null {
    return this.#shared.damage;
  }

  /** A query. Prepared once for each text: preparing takes longer than running. */
  sql(text: string): Statement {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const made = this.#prepare(text);
    this.#statements.set(text, made);
    return made;
  }

  /** A change. */
  run(text: string, ...values: SQLInputValue[]): ReturnType<Statement["run"]> {
    if (this.#db.isTransaction) return this.sql(text).run(...values);
    this.#checkWritable();
    this.#setWait(this.#usualWaitMs);
    const done = this.sql(text).run(...values);
    this.#shared.isLocked = false;
    return done;
  }

  /** All of it or nothing, alone among all processes that write to this database. Inside another one, a part of it. */
  exclusively<T>(act: () => T): T {
    const isPart = this.#db.isTransaction;
    if (!isPart) {
      this.#checkWritable();
      this.#setWait(this.#usualWaitMs);
    }
    try {
      this.#db.exec(isPart ? "SAVEPOINT part" : "BEGIN IMMEDIATE");
      if (!isPart) this.#shared.isLocked = false;
      const result = act();
      // Asked again: what is acknowledged must be in the file that the next start opens.
      if (!isPart) this.#checkWritable();
      this.#db.exec(isPart ? "RELEASE part" : "COMMIT");
      return result;
    } catch (error) {
      // On a disk that is full or fails SQLite has given up all of it by itself.
      if (this.#db.isTransaction) this.#rollBack(isPart);
      throw this.#explained(error);
    }
  }

  /** A change that may be lost in a power cut, and spares the wait for the disk. */
  unsynced(act: () => unknown): void {
    if (this.#db.isTransaction) {
      act();
      return;
    }
    this.#db.exec("PRAGMA synchronous = NORMAL");
    try {
      act();
    } finally {
      this.#db.exec("PRAGMA synchronous = FULL");
    }
  }

  /**
   * Another text once anybody has changed something: others, by the file's version, or we ourselves. `null` within a transaction:
   * what is read there may be taken back.
   */
  changeMark(): string | null {
    if (this.isInTransaction) return null;
    return `${this.changesByOthers()}.${this.#byUs.number()}`;
  }

  /** A number that moves when another connection has changed something; our own changes do not move it. */
  changesByOthers(): number {
    return this.#byOthers.number();
  }

  /** Throws `unavailable` once the file is no longer at its path. */
  checkInPlace(): void {
    if (this.isInPlace()) return;
    throw new SkeinError("unavailable", {
      problem: `${basename(this.#path)} was moved, deleted or replaced while it was in use`,
      advice: "Nothing was changed. Put the folder back where it was, or restart Skein",
    });
  }

  /** Whether another process keeps it from being changed now. */
  isLocked(): boolean {
    if (this.#db.isTransaction) return false;
    this.#setWait(lockedWaitMs);
    try {
      this.#db.exec("BEGIN IMMEDIATE; ROLLBACK");
      this.#shared.isLocked = false;
      return false;
    } catch (error) {
      if (isBusy(error)) return true;
      this.#explained(error); // damage is remembered
      return false;
    }
  }

  /** Whether the file is still at its path. Always true for one that is not pinned. */
  isInPlace(): boolean {
    return !this.#isPinned || this.#identity === null || fileIdentity(this.#path) === this.#identity;
  }

  /**
   * Rewrites the file, so that nothing of removed rows is left in it or in its write-ahead log. `false`: another connection
   * is reading or writing; what it holds on to stays until it lets go. `before` runs first.
   */
  scrub(before: () => void = () => undefined): boolean {
    this.#setWait(scrubWaitMs);
    try {
      // Under a reader the log would only grow, by the whole file with every try.
      if (!this.checkpoint()) return false;
      before();
      this.#db.exec("VACUUM");
      return this.checkpoint();
    } catch (error) {
      if (isBusy(error)) return false;
      throw this.#explain(error);
    } finally {
      this.#setWait(this.#longestWaitMs);
    }
  }

  /** Brings the write-ahead log into the file and empties it; `false`: a reader stood in the way. */
  checkpoint(): boolean {
    return this.#db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
  }

  /** What is wrong with its pages, or with `integrity_check` also between tables and indexes; `null`: nothing. */
  problem(check?: IntegrityCheck): string | null {
    return integrityProblem(this.#db, check);
  }

  close(): void {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#shared.connections -= 1;
      if (this.#shared.connections === 0) sharedFiles.delete(this.#identity ?? "");
    }
    this.#db.close();
  }

  #checkWritable(): void {
    if (this.#isPinned && this.#shared.damage !== null) throw damagedError(this.#path, this.#shared.damage);
    this.checkInPlace();
  }

  get #usualWaitMs(): number {
    return this.#shared.isLocked ? lockedWaitMs : this.#longestWaitMs;
  }

  #setWait(ms: number): void {
    if (ms === this.#waitMs) return;
    this.#db.exec(`PRAGMA busy_timeout = ${ms}`);
    this.#waitMs = ms;
  }

  #rollBack(isPart: boolean): void {
    try {
      this.#db.exec(isPart ? "ROLLBACK TO part; RELEASE part" : "ROLLBACK");
    } catch (error) {
      // Of a damaged database not even this may work; closing it does the same.
      if (!isDamage(error)) throw error;
    }
  }

  #prepare(text: string): Statement {
    try {
      return new Statement(this.#db.prepare(text), this.#explain);
    } catch (error) {
      throw this.#explained(error);
    }
  }

  #number(text: string): Statement {
    const made = this.#db.prepare(text);
    made.setReturnArrays(true);
    return new Statement(made, this.#explain);
  }

  /** An error of SQLite as one of ours, where an operator can do something about it. */
  #explained(error: unknown): unknown {
    const code = resultCode(error);
    const { message } = error as Error;
    if (code === corrupt || code === notADatabase) {
      this.#shared.damage ??= message;
      if (this.#isPinned) return damagedError(this.#path, message, error);
      const problem = `${basename(this.#path)} is damaged and is being rebuilt from the session logs`;
      return new SkeinError("unavailable", { problem, advice: "Try again in a moment" }, { cause: error });
    }
    if (code === busy) {
      this.#shared.isLocked = true;
      return lockedError(this.#path, error);
    }
    return diskError(this.#path, error) ?? error;
  }
}

/** Where the disk is full or failed; `null`: it is neither. */
function diskError(file: string, cause: unknown): SkeinError | null {
  const code = resultCode(cause);
  if (code !== diskFull && code !== ioError) return null;
  const failed = `the disk failed, or another process changed the file (${(cause as Error).message})`;
  const [problem, advice] =
    code === diskFull || isWithoutRoom(file)
      ? ["the disk is full", "Make room on the disk of this file, and try again"]
      : [failed, "Stop every process that uses the folder, check the disk, and try again"];
  return new SkeinError("write_failed", { file, problem, advice }, { cause });
}

/** SQLite calls it an I/O error where there is no room for the file `-shm`, which every database needs that is opened. */
function isWithoutRoom(file: string): boolean {
  const leastBytes = 65_536;
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize < leastBytes;
  } catch {
    return false; // the folder is gone
  }
}

/**
 * SQLite creates a file by the umask, and the files beside it with its mode. A file that exists is not opened: closing it would
 * drop every lock that this process holds on it, and the next client to close the database would delete its live log.
 */
function createOwnerOnly(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * Runs `pragmas` once no other connection stands in the way, for about `ms` at most. SQLite waits for a lock by itself, except
 * for the one that turns a new file into one with a write-ahead log: two processes that open it at once would get an error.
 */
function execWhenFree(db: DatabaseSync, pragmas: string, ms: number): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const until = performance.now() + ms;
  for (;;) {
    try {
      db.exec(pragmas);
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw error;
      Atomics.wait(pause, 0, 0, openRetryMs);
    }
  }
}

function lockedError(path: string, cause: unknown): SkeinError {
  const problem = `another process keeps ${basename(path)} locked`;
  const advice = "Try again in a moment; if it stays locked, end the process that uses the folder";
  return new SkeinError("unavailable", { problem, advice }, { cause });
}

/** Whether SQLite says that a file is damaged, or no database at all. */
export function isDamage(error: unknown): boolean {
  return resultCode(error) === corrupt || isNoDatabase(error);
}

/** Whether another connection holds the lock that a statement needs. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === busy;
}

/** Whether SQLite says that nothing of a file can be read. */
export function isNoDatabase(error: unknown): boolean {
  return resultCode(error) === notADatabase;
}

export function damagedError(file: string, problem: string, cause?: unknown): SkeinError {
  return new SkeinError("store_damaged", { file, problem }, cause === undefined ? {} : { cause });
}

type IntegrityCheck = "quick_check" | "integrity_check";

/** What SQLite's own check finds first; `null`: nothing. */
export function integrityProblem(db: DatabaseSync, check: IntegrityCheck = "quick_check"): string | null {
  try {
    const [row] = db.prepare(`PRAGMA ${check}(1)`).all();
    const found = Object.values(row ?? {})[0];
    return found === "ok" ? null : String(found).replaceAll("\n", " ");
  } catch (error) {
    if (!isDamage(error)) throw error;
    return (error as Error).message;
  }
}

/** Which file is at a path, whatever it is named; `null`: none. */
export function fileIdentity(path: string): string | null {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
}

/** The primary part of SQLite's code; `null`: not an error of SQLite. */
function resultCode(error: unknown): number | null {
  const { errcode } = (error ?? {}) as { readonly errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : null;
}

/** Brings a database forward, a step a version, each whole or not at all. One from a newer Skein is refused. */
function migrate(db: DatabaseSync, path: string, steps: readonly string[]): void {
  const versionNow = () => Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  // Nothing is written to a database that is up to date: it is opened on a full disk too.
  if (versionNow() === steps.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = versionNow();
    if (version > steps.length) {
      const problem = `its version ${version} is newer than ${steps.length}, the last that this Skein knows`;
      throw new SkeinError("read_only", { name: path, problem });
    }
    for (const step of steps.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${steps.length}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK"); // on a full disk SQLite has done so
    throw error;
  }
}
