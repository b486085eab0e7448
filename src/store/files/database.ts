import { closeSync, openSync } from "node:fs";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { DatabaseSync } from "node:sqlite";
import { SkeinError } from "../../core/errors.ts";
import { migrate } from "./migrations.ts";

/** A database that lives as long as it is open. */
export const inMemory = ":memory:";

/** SQLITE_BUSY and SQLITE_FULL. */
const busy = 5;
const diskFull = 13;
/** How long others are waited for. */
const waitMs = 10_000;
const scrubWaitMs = 1000;

/** A SQLite database with its migrations done and its statements kept. */
export class Database {
  readonly #path: string;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #byOthers: StatementSync;
  readonly #byUs: StatementSync;

  /** `verify`: one whose pages are damaged is refused, as one that cannot be opened at all is. */
  constructor(path: string, pragmas: string, migrations: readonly string[], verify = false) {
    this.#path = path;
    // SQLite makes its files by the umask, and those beside this one with the mode of this one.
    if (path !== inMemory) closeSync(openSync(path, "a", 0o600));
    this.#db = new DatabaseSync(path, { timeout: waitMs });
    try {
      this.#db.exec(pragmas);
      migrate(this.#db, path, migrations);
      const found = verify ? this.problem() : null;
      if (found !== null) throw new Error(`the database is malformed: ${found}`);
      this.#byOthers = this.#number("PRAGMA data_version");
      this.#byUs = this.#number("SELECT total_changes()");
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  /** What is read now may be taken back. */
  get isInTransaction(): boolean {
    return this.#db.isTransaction;
  }

  /** A query. Prepared once for each text: preparing takes longer than running. */
  sql(text: string): StatementSync {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const made = this.#db.prepare(text);
    this.#statements.set(text, made);
    return made;
  }

  /** A change. The last row id may be one inside a word index, which does not fit a number. */
  run(
    text: string,
    ...values: SQLInputValue[]
  ): { readonly changes: number | bigint; readonly lastInsertRowid: number | bigint } {
    const statement = this.sql(text);
    statement.setReadBigInts(true);
    return statement.run(...values);
  }

  /** All of it or nothing, alone among all processes that write to this database. Inside another one, a part of it. */
  exclusively<T>(act: () => T): T {
    const isPart = this.#db.isTransaction;
    this.#db.exec(isPart ? "SAVEPOINT part" : "BEGIN IMMEDIATE");
    try {
      const result = act();
      this.#db.exec(isPart ? "RELEASE part" : "COMMIT");
      return result;
    } catch (error) {
      // On a disk that is full or fails SQLite has given up all of it by itself.
      if (this.#db.isTransaction) this.#db.exec(isPart ? "ROLLBACK TO part; RELEASE part" : "ROLLBACK");
      throw this.#told(error);
    }
  }

  #told(error: unknown): unknown {
    if ((error as { readonly errcode?: unknown }).errcode !== diskFull) return error;
    const [problem, advice] = ["the disk is full", "Make room, and try again"];
    return new SkeinError("write_failed", { file: this.#path, problem, advice }, { cause: error });
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
    return `${this.changesByOthers()}.${numberOf(this.#byUs)}`;
  }

  /** A number that moves when another connection has changed something; our own changes do not move it. */
  changesByOthers(): number {
    return numberOf(this.#byOthers);
  }

  /**
   * Writes the file anew, so that nothing of removed rows is left in it or in its write-ahead log. `false`: another connection
   * is reading or writing; what it holds on to stays until it lets go. `before` runs first.
   */
  scrub(before: () => void = () => undefined): boolean {
    this.#db.exec(`PRAGMA busy_timeout = ${scrubWaitMs}`);
    try {
      // Under a reader the log would only grow, by the whole file with every try.
      if (!this.checkpoint()) return false;
      before();
      this.#db.exec("VACUUM");
      return this.checkpoint();
    } catch (error) {
      if ((error as { readonly errcode?: unknown }).errcode === busy) return false;
      throw this.#told(error);
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${waitMs}`);
    }
  }

  /** Brings the write-ahead log into the file and empties it; `false`: a reader stood in the way. */
  checkpoint(): boolean {
    return this.#db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
  }

  /** What is wrong with its pages; `null`: nothing. */
  problem(): string | null {
    const [row] = this.#db.prepare("PRAGMA quick_check(1)").all();
    const found = Object.values(row ?? {})[0];
    return found === "ok" ? null : String(found);
  }

  close(): void {
    this.#db.close();
  }

  /** Asked with every request: a row as a list takes half the time of one with names. */
  #number(text: string): StatementSync {
    const made = this.#db.prepare(text);
    made.setReturnArrays(true);
    return made;
  }
}

function numberOf(statement: StatementSync): number {
  const row = statement.get() as unknown as readonly unknown[];
  return Number(row[0]);
}
