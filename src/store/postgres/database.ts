import type pg from "pg";
import { KeyedMutex, sleep } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Durability } from "../../core/script.ts";
import type { Outcome } from "./database-errors.ts";
import { databaseError, isConflictWithOthers, isConnectionLost } from "./database-errors.ts";
import type { DirectConnection } from "./direct-connection.ts";
import { connectionSettings, loadPg, openDirectConnection } from "./direct-connection.ts";
import { encodeText, everyUserKey, userKey } from "./lookup-text.ts";

/** A value that can be passed to a statement. */
export type SqlValue = null | boolean | number | string | Uint8Array | readonly (boolean | number | string)[];

/** Runs a statement and returns its rows. */
export type Sql = <Row>(text: string, values?: readonly SqlValue[]) => Promise<Row[]>;

/** A transaction that is not limited to the rows of one user. Only the owner and the worker's role may begin it. */
export const everyUser = Symbol("every user");

/** The user whose rows a transaction sees. */
export type Actor = string | null | typeof everyUser;

export interface TransactOptions {
  /** `true` if the script may run again although it might have been committed. */
  readonly isRepeatable?: boolean;
  /** `unsynced` commits without waiting for the disk. */
  readonly durability?: Durability;
  /**
   * `runs` excludes other transactions that change the user's runs. `slots` also excludes all transactions that occupy a
   * slot of a lane. `gateway` excludes other changes to its tokens and event numbers.
   */
  readonly locks?: "runs" | "slots" | "gateway";
}

export interface DatabaseOptions {
  /** For example `postgres://skein_app:password@db.example.org/skein`. */
  readonly url: string;
  /** The address for connections that keep state between transactions. Defaults to `url`. */
  readonly directUrl?: string;
  /** The maximum number of connections of this process. */
  readonly maxConnections?: number;
  /** How long to wait before each retry after a lost connection. */
  readonly retryDelaysMs?: readonly number[];
  /**
   * How long a transaction can wait for this process. Then the server ends it, so that a process that was paused does
   * not keep a session locked.
   */
  readonly idleTransactionMs?: number;
}

const defaultConnections = 10;
const defaultDelays = [50, 100, 200, 400, 800, 1600];
const defaultIdleMs = 60_000;
/** The same for a transaction with locks. Shorter than a lease, because others wait for these locks to take over runs. */
const lockedIdleMs = 4000;
const mostConflicts = 10;
const int8 = 20;

/** Tells `#retry` how much is known about a failed attempt. */
class FailedAttempt extends Error {
  readonly outcome: Outcome;

  constructor(cause: unknown, outcome: Outcome) {
    super("an attempt failed", { cause });
    this.outcome = outcome;
  }
}

/**
 * A pool of connections. No connection keeps state between transactions, so PgBouncer can be used in transaction mode:
 * the user is set inside each transaction, and statements are not named.
 */
export class PostgresDatabase {
  /** Host, port and database, without the password. */
  readonly name: string;
  /** Called after a transaction with locks has been committed. */
  onChange: () => void = () => undefined;
  readonly #pool: pg.Pool;
  readonly #directUrl: string;
  readonly #delays: readonly number[];
  readonly #idleMs: number;
  readonly #closed = new AbortController();
  /** Keeps transactions that wait for the same user's lock from occupying several connections. */
  readonly #lockQueues = new KeyedMutex();

  private constructor(pool: pg.Pool, options: DatabaseOptions) {
    this.name = databaseName(options.url);
    this.#pool = pool;
    this.#directUrl = options.directUrl ?? options.url;
    this.#delays = options.retryDelaysMs ?? defaultDelays;
    this.#idleMs = options.idleTransactionMs ?? defaultIdleMs;
  }

  /** Opens no connection yet. Throws `unavailable` if the package `pg` is not installed. */
  static async create(options: DatabaseOptions): Promise<PostgresDatabase> {
    const { Pool, types } = await loadPg();
    const getTypeParser = ((oid: number, format?: "text" | "binary") =>
      oid === int8 ? Number : types.getTypeParser(oid, format as "text")) as typeof types.getTypeParser;
    const pool = new Pool({
      connectionString: options.url,
      max: options.maxConnections ?? defaultConnections,
      ...connectionSettings,
      allowExitOnIdle: true,
      // Begin, user, statement and commit are sent together, without waiting for each reply.
      pipeline: true,
      types: { getTypeParser },
    });
    // A lost connection also fails its statement, where it is handled.
    const ignore = () => undefined;
    pool.on("error", ignore);
    pool.on("connect", (client) => void client.on("error", ignore));
    return new PostgresDatabase(pool, options);
  }

  /**
   * Runs a script in a transaction as a user. If the connection is lost before the commit is sent, or the transaction
   * conflicts with another one, the script runs again. If it is lost during the commit, the script runs again only if
   * `isRepeatable`.
   */
  transact<T>(actor: Actor, script: (sql: Sql) => Promise<T>, options: TransactOptions = {}): Promise<T> {
    const act = () => this.#transact(actor, options, (client) => script(sqlOf(client)));
    return options.locks === undefined ? act() : this.#transactAlone(runSettingOf(actor), act);
  }

  async #transactAlone<T>(queue: string, act: () => Promise<T>): Promise<T> {
    const result = await this.#lockQueues.run(queue, act);
    this.onChange();
    return result;
  }

  /**
   * Opens a connection that is not part of the pool and can keep state between transactions. The caller closes it. It does
   * not keep the process alive.
   */
  openConnection(): Promise<DirectConnection> {
    return openDirectConnection(this.#directUrl);
  }

  /** Runs one statement that only reads, in one round trip. */
  async read<Row>(actor: Actor, text: string, values: readonly SqlValue[] = []): Promise<Row[]> {
    return this.#retry(true, async (client) => {
      const begin = this.#begin(client, actor, {});
      const sent = [client.query(text, [...values]), client.query("COMMIT"), ...begin];
      const [answer] = await Promise.all(sent);
      return (answer?.rows ?? []) as Row[];
    });
  }

  /**
   * Calls a function that sets the user itself and is a transaction of its own. After a lost connection, it is called
   * again, so a function that writes must recognize what it has already written. `isRepeated` then reports that an
   * earlier call might have been stored.
   */
  async call<Row>(
    text: string,
    values: readonly SqlValue[],
  ): Promise<{ readonly rows: Row[]; readonly isRepeated: boolean }> {
    let calls = 0;
    return this.#retry(true, async (client) => {
      calls += 1;
      try {
        return { rows: (await client.query(text, [...values])).rows as Row[], isRepeated: calls > 1 };
      } catch (error) {
        throw new FailedAttempt(error, isConnectionLost(error) ? "unknown" : "not stored");
      }
    });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    if (!this.#pool.ended && !this.#pool.ending) await this.#pool.end();
  }

  #transact<T>(
    actor: Actor,
    options: TransactOptions,
    act: (client: pg.PoolClient) => Promise<T>,
  ): Promise<T> {
    return this.#retry(options.isRepeatable ?? false, async (client) => {
      let outcome: Outcome = "not stored";
      try {
        // The first statement of the script is sent together with these.
        const begun = Promise.all(this.#begin(client, actor, options));
        const [result] = await Promise.all([act(client), begun]);
        outcome = "unknown";
        await client.query("COMMIT");
        return result;
      } catch (error) {
        throw new FailedAttempt(error, isConnectionLost(error) ? outcome : "not stored");
      }
    });
  }

  #begin(
    client: pg.PoolClient,
    actor: Actor,
    { durability, locks }: TransactOptions,
  ): Promise<pg.QueryResult>[] {
    const settings = `SELECT set_config('skein.user_id', $1, true), set_config('skein.run_user', $2, true),
      set_config('idle_in_transaction_session_timeout', $3, true)`;
    const user = actor === everyUser ? everyUserKey : userKey(actor);
    const runUser = runSettingOf(actor);
    const idleMs = locks === undefined ? this.#idleMs : Math.min(this.#idleMs, lockedIdleMs);
    return [
      client.query("BEGIN"),
      client.query(settings, [user, runUser, String(idleMs)]),
      ...(durability === "unsynced" ? [client.query("SET LOCAL synchronous_commit = off")] : []),
      ...locksOf(runUser, locks).map((lock) => client.query(lockText, [lock])),
    ];
  }

  async #retry<T>(isRepeatable: boolean, attempt: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    // If an earlier attempt might have been stored, later errors do not change that.
    let outcome: Outcome = "not stored";
    for (let lost = 0, conflicts = 0; ; ) {
      try {
        return await this.#attempt(attempt);
      } catch (thrown) {
        const error = thrown instanceof FailedAttempt ? thrown.cause : thrown;
        if (thrown instanceof FailedAttempt && thrown.outcome === "unknown") outcome = "unknown";
        if (isConflictWithOthers(error) && conflicts++ < mostConflicts) continue;
        const delay = this.#delays[lost++];
        const canRepeat = isConnectionLost(error) && (outcome === "not stored" || isRepeatable);
        if (!canRepeat || delay === undefined || this.#closed.signal.aborted)
          throw databaseError(error, this.name, outcome);
        await sleep(delay, this.#closed.signal);
      }
    }
  }

  async #attempt<T>(act: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    if (this.#closed.signal.aborted) throw closedError();
    const client = await this.#pool.connect();
    try {
      const result = await act(client);
      client.release();
      return result;
    } catch (error) {
      await this.#endTransaction(client, error);
      throw error;
    }
  }

  /** A failed statement leaves its transaction open. A connection that cannot end it is closed. */
  async #endTransaction(client: pg.PoolClient, error: unknown): Promise<void> {
    const failed = error instanceof FailedAttempt ? error.cause : error;
    if (isConnectionLost(failed)) return client.release(true);
    await client.query("ROLLBACK").then(
      () => client.release(),
      (broken: Error) => client.release(broken),
    );
  }
}

const lockText = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/** Returns the advisory locks of a transaction, in the order in which all transactions take them. */
function locksOf(runUser: string, locks: TransactOptions["locks"]): string[] {
  if (locks === undefined) return [];
  if (locks === "gateway") return ["skein gateway"];
  return [`skein runs ${runUser}`, ...(locks === "slots" ? ["skein slots"] : [])];
}

/** Starts with a letter for a user, because an empty setting means that no user is set. */
function runSettingOf(actor: Actor): string {
  return actor === everyUser ? "*" : `u${encodeText(actor ?? "")}`;
}

function sqlOf(client: pg.PoolClient): Sql {
  return async (text, values = []) => (await client.query(text, [...values])).rows;
}

function closedError(): SkeinError {
  return new SkeinError("unavailable", { problem: "The store is closed", advice: "Open it again" });
}

function databaseName(url: string): string {
  if (!URL.canParse(url)) return "PostgreSQL";
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
