import { closeSync, openSync, rmSync, statfsSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { SkeinError } from "../../core/errors.ts";

/**
 * Not a static import. Node 20 lacks this module, so a static import would fail before the package could report which
 * Node version it requires.
 */
export const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
export type DatabaseSync = InstanceType<typeof DatabaseSync>;

/** The suffixes of a database's files. */
export const databaseEndings = ["", "-wal", "-shm"] as const;

export const inMemory = ":memory:";

/** SQLite's primary result codes. */
const [busy, ioError, corrupt, diskFull, notADatabase] = [5, 10, 11, 13, 26];
const defaultWaitMs = 10_000;
/**
 * Once another process has held the lock for the full timeout, this shorter timeout applies until the lock is released.
 */
const lockedWaitMs = 100;
const scrubWaitMs = 1000;
const openRetryMs = 5;

interface DatabaseOptions {
  /** How long a statement waits for other connections. The wait blocks the process. */
  readonly waitMs?: number;
  /** Rejects a database with damaged pages. */
  readonly verify?: boolean;
  /**
   * Rejects writes to a file that is damaged or no longer at its path. Every write spreads the damage, and a commit to
   * a moved or deleted file is lost.
   */
  readonly isPinned?: boolean;
  /** Fails if there is no file, instead of creating one. */
  readonly mustExist?: boolean;
  /** Called after the file has been created. If it throws, the file is deleted. */
  readonly whenCreated?: () => void;
  /** Functions with one string argument that migrations call. */
  readonly functions?: Readonly<Record<string, (text: string) => string>>;
}

/** The state of an open file, shared by this thread's connections. */
interface SharedFile {
  connections: number;
  damage: string | null;
  /** Whether another process held the lock at the last write. */
  isLocked: boolean;
}

/** Keyed by device and inode, which are unique while the file is open. */
const sharedFiles = new Map<string, SharedFile>();

/** Records damage found by another thread. */
export function noteDamage(path: string, damage: string): void {
  const file = sharedFiles.get(fileIdentity(path) ?? "");
  if (file !== undefined) file.damage ??= damage;
}

/** A prepared statement that translates SQLite errors. */
class Statement {
  readonly #statement: StatementSync;
  readonly #explain: (error: unknown) => unknown;

  constructor(statement: StatementSync, explain: (error: unknown) => unknown) {
    this.#statement = statement;
    this.#explain = explain;
  }

  all(...values: SQLInputValue[]): Record<string, unknown>[] {
    return this.#try(() => this.#statement.all(...values));
  }

  /** Calls `act` for each row, without keeping all rows in memory. */
  each(values: readonly SQLInputValue[], act: (row: Record<string, unknown>) => void): void {
    this.#try(() => {
      for (const row of this.#statement.iterate(...values)) act(row);
    });
  }

  get(...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return this.#try(() => this.#statement.get(...values));
  }

  /** The last row ID might come from the word index and exceed the safe integer range. */
  run(...values: SQLInputValue[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  } {
    return this.#try(() => {
      this.#statement.setReadBigInts(true);
      return this.#statement.run(...values);
    });
  }

  /** Returns the first column of the first row. Reading rows as arrays takes half as long as reading objects. */
  number(): number {
    return this.#try(() => {
      const row = this.#statement.get() as unknown as readonly unknown[];
      return Number(row[0]);
    });
  }

  #try<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      throw this.#explain(error);
    }
  }
}

/** A SQLite database with migrations and cached statements. */
export class Database {
  readonly #path: string;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();
  readonly #byOthers: Statement;
  readonly #byUs: Statement;
  readonly #shared: SharedFile;
  /** `null` for an in-memory database. */
  readonly #identity: string | null;
  readonly #isPinned: boolean;
  readonly #explain = (error: unknown) => this.#explained(error);
  readonly #longestWaitMs: number;
  #waitMs: number;
  #isClosed = false;

  constructor(path: string, pragmas: string, migrations: readonly string[], options: DatabaseOptions = {}) {
    const { verify = false, isPinned = false, waitMs = defaultWaitMs, functions = {} } = options;
    this.#path = path;
    this.#longestWaitMs = waitMs;
    this.#waitMs = waitMs;
    const isNew = path !== inMemory && options.mustExist !== true && createOwnerOnly(path);
    this.#db = new DatabaseSync(path === inMemory ? path : existingFile(path), { timeout: waitMs });
    try {
      if (isNew) confirmCreated(path, options.whenCreated);
      execWhenFree(this.#db, pragmas, waitMs);
      for (const [name, act] of Object.entries(functions))
        this.#db.function(name, { deterministic: true }, (text) => act(String(text)));
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

  /** Whether a transaction is open. It can still be rolled back. */
  get isInTransaction(): boolean {
    return this.#db.isTransaction;
  }

  /** The file's device and inode. Empty for an in-memory database. */
  get identity(): string {
    return this.#identity ?? "";
  }

  /** Damage that one of this thread's connections has found, or `null` if there has been none so far. */
  get damage(): string | null {
    return this.#shared.damage;
  }

  /** Prepares a query. Statements are cached because preparing one takes longer than running it. */
  sql(text: string): Statement {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const made = this.#prepare(text);
    this.#statements.set(text, made);
    return made;
  }

  /** Runs a write. */
  run(text: string, ...values: SQLInputValue[]): ReturnType<Statement["run"]> {
    if (this.#db.isTransaction) return this.sql(text).run(...values);
    this.#checkWritable();
    this.#setWait(this.#usualWaitMs);
    const done = this.sql(text).run(...values);
    this.#shared.isLocked = false;
    return done;
  }

  /** Runs `act` in a transaction that excludes all other writers. Nested calls are savepoints. */
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
      // Checked again because acknowledged data must be in the file that the next start opens.
      if (!isPart) this.#checkWritable();
      this.#db.exec(isPart ? "RELEASE part" : "COMMIT");
      return result;
    } catch (error) {
      // On a full or failing disk, SQLite has already rolled back.
      if (this.#db.isTransaction) this.#rollBack(isPart);
      throw this.#explained(error);
    }
  }

  /** Runs a change without waiting for the disk. A power failure can undo it. */
  unsynced<T>(act: () => T): T {
    if (this.#db.isTransaction) return act();
    this.#db.exec("PRAGMA synchronous = NORMAL");
    try {
      return act();
    } finally {
      this.#db.exec("PRAGMA synchronous = FULL");
    }
  }

  /**
   * A value that changes with every change by any connection. `null` inside a transaction because the transaction can
   * be rolled back.
   */
  changeMark(): string | null {
    if (this.isInTransaction) return null;
    return `${this.changesByOthers()}.${this.#byUs.number()}`;
  }

  /** A value that changes when another connection writes, but not when this one does. */
  changesByOthers(): number {
    return this.#byOthers.number();
  }

  /** Throws `unavailable` if the file is no longer at its path. */
  checkInPlace(): void {
    if (this.isInPlace()) return;
    throw new SkeinError("unavailable", {
      problem: `${basename(this.#path)} was moved, deleted or replaced while it was in use`,
      advice: "Nothing was changed. Move the folder back to where it was, or restart Skein",
    });
  }

  /** Whether another process is holding the write lock. */
  isLocked(): boolean {
    if (this.#db.isTransaction) return false;
    this.#setWait(lockedWaitMs);
    try {
      this.#db.exec("BEGIN IMMEDIATE; ROLLBACK");
      this.#shared.isLocked = false;
      return false;
    } catch (error) {
      if (isBusy(error)) return true;
      this.#explained(error); // Records the damage.
      return false;
    }
  }

  /** Whether the file is still at its path. Always `true` if not pinned. */
  isInPlace(): boolean {
    return !this.#isPinned || this.#identity === null || fileIdentity(this.#path) === this.#identity;
  }

  /**
   * Rewrites the file so that no bytes of deleted rows remain in it or in its write-ahead log. Returns `false` if bytes
   * remain because another connection is active. `before` runs first.
   */
  scrub(before: () => void = () => undefined): boolean {
    this.#setWait(scrubWaitMs);
    try {
      // While a reader is active, each attempt would only grow the log by the size of the file.
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

  /** Moves the write-ahead log into the file and truncates it. Returns `false` if a reader prevented that. */
  checkpoint(): boolean {
    return this.#db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
  }

  /**
   * Returns the first problem with the database's pages, or `null` if there is none. With `integrity_check`, also
   * compares tables with their indexes.
   */
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
      // A rollback can fail in a damaged database. Closing the connection has the same effect.
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

  /** Translates SQLite errors into errors that an operator can act on. */
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

/** Returns `null` if the disk is neither full nor failing. */
function diskError(file: string, cause: unknown): SkeinError | null {
  const code = resultCode(cause);
  if (code !== diskFull && code !== ioError) return null;
  const failed = `the disk failed, or another process changed the file (${(cause as Error).message})`;
  const [problem, advice] =
    code === diskFull || isWithoutRoom(file)
      ? ["the disk is full", "Free up space on this file's disk, then try again"]
      : [failed, "Stop every process that uses the folder, check the disk, then try again"];
  return new SkeinError("write_failed", { file, problem, advice }, { cause });
}

/** Whether the disk is full. SQLite reports an I/O error if there is no space for the `-shm` file. */
function isWithoutRoom(file: string): boolean {
  const leastBytes = 65_536;
  try {
    const { bavail, bsize } = statfsSync(dirname(file));
    return bavail * bsize < leastBytes;
  } catch {
    return false; // The folder no longer exists.
  }
}

/**
 * Creates a new database file with mode 0600. If SQLite created the file, it would apply the umask. SQLite gives the
 * same mode to the `-wal` and `-shm` files. An existing file is not opened here, because closing it would drop all of
 * this process's locks on it. The next process to close the database would then delete the write-ahead log while it is
 * in use.
 */
function createOwnerOnly(path: string): boolean {
  try {
    closeSync(openSync(path, "wx", 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

function confirmCreated(path: string, whenCreated: () => void = () => undefined): void {
  try {
    whenCreated();
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** An address with which SQLite opens the file but never creates it. */
function existingFile(path: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set("mode", "rw");
  return url;
}

/**
 * Runs `pragmas` once no other connection interferes, retrying for up to `ms`. SQLite waits for every lock except the
 * one that switches a new file to a write-ahead log. Without a retry, two processes that open the file at the same time
 * would get an error.
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
  const problem = `another process is keeping ${basename(path)} locked`;
  const advice = "Try again in a moment. If it stays locked, stop the process that uses the folder";
  return new SkeinError("unavailable", { problem, advice }, { cause });
}

/** Whether a file is damaged or not a database. */
export function isDamage(error: unknown): boolean {
  return resultCode(error) === corrupt || isNoDatabase(error);
}

export function isBusy(error: unknown): boolean {
  return resultCode(error) === busy;
}

/** Whether the file is completely unreadable. */
export function isNoDatabase(error: unknown): boolean {
  return resultCode(error) === notADatabase;
}

export function damagedError(file: string, problem: string, cause?: unknown): SkeinError {
  return new SkeinError("store_damaged", { file, problem }, cause === undefined ? {} : { cause });
}

type IntegrityCheck = "quick_check" | "integrity_check";

/** Returns the first finding of SQLite's own check, or `null` if there is none. */
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

/** Returns the device and inode of the file at a path, or `null` if there is no such file. */
export function fileIdentity(path: string): string | null {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
}

/** Returns SQLite's primary result code, or `null` if the error is not from SQLite. */
function resultCode(error: unknown): number | null {
  const { errcode } = (error ?? {}) as { readonly errcode?: unknown };
  return typeof errcode === "number" ? errcode & 0xff : null;
}

/** Applies missing migrations, each of them in full or not at all. Rejects a database from a newer version of Skein. */
function migrate(db: DatabaseSync, path: string, steps: readonly string[]): void {
  const versionNow = () => Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
  // Writes nothing if the database is up to date, so the database can be opened on a full disk.
  if (versionNow() === steps.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = versionNow();
    if (version > steps.length) {
      const problem = `its version ${version} is newer than ${steps.length}, the latest version that this release of Skein supports`;
      throw new SkeinError("read_only", { name: path, problem });
    }
    for (const step of steps.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${steps.length}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK"); // On a full disk, SQLite has already rolled back.
    throw error;
  }
}
