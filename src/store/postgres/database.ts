import type pg from "pg";
import { KeyedMutex, sleep } from "../../core/concurrency.ts";
import { SkeinError } from "../../core/errors.ts";
import { present } from "../../core/present.ts";
import type { Durability } from "../../core/script.ts";
import type { Outcome } from "./database-errors.ts";
import { databaseError, isConflictWithOthers, isConnectionLost, isPlanOutdated } from "./database-errors.ts";
import type { DirectConnection } from "./direct-connection.ts";
import { connectionSettings, loadPg, openDirectConnection } from "./direct-connection.ts";
import { encodeText, everyUserKey, userKey } from "./lookup-text.ts";

/** A value that can be passed to a statement. */
export type SqlValue = null | boolean | number | string | Uint8Array | readonly (boolean | number | string)[];

/** Runs a statement and returns its rows. */
export type Sql = <Row>(text: string, values?: readonly SqlValue[]) => Promise<Row[]>;

/** A transaction that is not limited to the rows of one user. Only the owner and the worker's role may begin one. */
export const everyUser = Symbol("every user");

/** The user whose rows a transaction sees. */
export type Actor = string | null | typeof everyUser;

export interface TransactOptions {
  /** `true` if the script may run again even though an earlier attempt might have been committed. */
  readonly isRepeatable?: boolean;
  /** `unsynced` commits without waiting for the disk. */
  readonly durability?: Durability;
  /**
   * `runs` excludes other transactions that change the user's runs. `gateway` excludes other changes to the gateway's
   * tokens and event numbers.
   */
  readonly locks?: "runs" | "gateway";
  /**
   * `true` if the transaction's statements have no timeout, not even for locks, and its script can take any time between
   * two statements. Only the lock in `locks` is still waited for no longer than usual. The server ends the transaction only if the process is paused, or if the script blocks the event loop.
   */
  readonly isLong?: boolean;
  /** `true` to throw `locked` instead of waiting for another process that has the lock. */
  readonly skipsLocked?: boolean;
}

export interface DatabaseOptions {
  /** For example `postgres://skein_app:password@db.example.org/skein`. */
  readonly url: string;
  /** The address for connections that keep state between transactions. Defaults to `url`. */
  readonly directUrl?: string;
  /** The maximum number of connections in the pool. */
  readonly maxConnections?: number;
  /** How long to wait before each retry after a lost connection. */
  readonly retryDelaysMs?: readonly number[];
  /**
   * How long a transaction can be idle. After that, the server ends it so that a paused process does not keep a session
   * locked.
   */
  readonly idleTransactionMs?: number;
  /** How long a statement waits for another transaction's lock before it fails with `locked`. */
  readonly lockTimeoutMs?: number;
}

const defaultConnections = 10;
const defaultDelays = [50, 100, 200, 400, 800, 1600];
/**
 * No retry begins later than this many milliseconds after the first lost connection. The limit is needed because each
 * attempt takes a long time to fail if the server hangs.
 */
const retryMs = 10_000;
const defaultIdleMs = 60_000;
/**
 * How long a transaction with locks can be idle. Shorter than a lease, because other processes need these locks to take
 * over runs.
 */
const lockedIdleMs = 4000;
/** The same for a long transaction. A script that handles a large session can block the event loop for seconds. */
const longLockedIdleMs = 20_000;
/** Shorter than a statement's timeout, which cannot be told apart from a server that has stopped responding. */
const defaultLockMs = 20_000;
const mostConflicts = 10;
/** In milliseconds, the longest delay that timers support. */
const longest = 2 ** 31 - 1;
const mostPrepared = 500;
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
 * A pool of connections. The user is set inside each transaction, and statements are prepared only on connections to
 * the server itself, so PgBouncer can be used in transaction mode.
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
  readonly #lockMs: number;
  readonly #closed = new AbortController();
  /** Keeps transactions that wait for the same user's lock from occupying several connections. */
  readonly #lockQueues = new KeyedMutex();
  /** Connections to the server itself, where a statement can be prepared once and executed many times. */
  readonly #direct = new WeakSet<pg.PoolClient>();
  readonly #statementNames = new Map<string, string>();

  private constructor(pool: pg.Pool, options: DatabaseOptions) {
    this.name = databaseName(options.url);
    this.#pool = pool;
    this.#directUrl = options.directUrl ?? options.url;
    this.#delays = options.retryDelaysMs ?? defaultDelays;
    this.#idleMs = options.idleTransactionMs ?? defaultIdleMs;
    this.#lockMs = options.lockTimeoutMs ?? defaultLockMs;
  }

  /** Does not open a connection yet. Throws `unavailable` if the package `pg` is not installed. */
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
    // A lost connection also makes its statement fail, and the statement's error is handled.
    const ignore = () => undefined;
    pool.on("error", ignore);
    const made = new PostgresDatabase(pool, options);
    pool.on("connect", (client) => {
      client.on("error", ignore);
      const { processID } = client as DirectConnection & pg.PoolClient;
      // A pooler shares its connections to the server with other programs, so they keep their settings.
      const limit = "SELECT set_config('lock_timeout', $1, false) WHERE pg_backend_pid() = $2";
      client.query(limit, [String(made.#lockMs), processID]).catch(ignore);
    });
    return made;
  }

  /**
   * Runs a script in a transaction as a user. If the connection is lost before the commit is sent, or the transaction
   * conflicts with another one, the script runs again. If the connection is lost during the commit, the script runs
   * again only if `isRepeatable`.
   */
  transact<T>(actor: Actor, script: (sql: Sql) => Promise<T>, options: TransactOptions = {}): Promise<T> {
    const act = () => this.#transact(actor, options, (client) => script(this.#sqlOf(client, options)));
    return options.locks === undefined ? act() : this.#transactAlone(runSettingOf(actor), act);
  }

  async #transactAlone<T>(queue: string, act: () => Promise<T>): Promise<T> {
    const result = await this.#lockQueues.run(queue, act);
    this.onChange();
    return result;
  }

  /**
   * Opens a connection that is not part of the pool and can keep state between transactions. The caller closes it. It
   * does not keep the process alive.
   */
  openConnection(): Promise<DirectConnection> {
    return openDirectConnection(this.#directUrl);
  }

  /** Runs one statement that only reads, in one round trip. */
  async read<Row>(actor: Actor, text: string, values: readonly SqlValue[] = []): Promise<Row[]> {
    return this.#retry(true, async (client) => {
      const begun = this.#begin(client, actor, {});
      const [answer] = await Promise.all([
        this.#prepare(client, text, values),
        client.query("COMMIT"),
        begun,
      ]);
      return (answer?.rows ?? []) as Row[];
    });
  }

  /**
   * Calls a function that sets the user itself and runs in its own transaction. After a lost connection, it is called
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
        return { rows: (await this.#prepare(client, text, values)).rows as Row[], isRepeated: calls > 1 };
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
      const stop = options.isLong === true ? keepActive(client, this.#idleMsOf(options)) : () => undefined;
      try {
        const begun = this.#begin(client, actor, options);
        // Without this, the script's first statement would be sent before the lock is known to be acquired.
        if (options.skipsLocked === true) await begun;
        const [result] = await Promise.all([act(client), begun]);
        stop();
        outcome = "unknown";
        await client.query("COMMIT");
        return result;
      } catch (error) {
        throw new FailedAttempt(error, isConnectionLost(error) ? outcome : "not stored");
      } finally {
        stop();
      }
    });
  }

  #idleMsOf({ locks, isLong = false }: TransactOptions): number {
    if (locks === undefined) return this.#idleMs;
    return Math.min(this.#idleMs, isLong ? longLockedIdleMs : lockedIdleMs);
  }

  async #begin(client: pg.PoolClient, actor: Actor, options: TransactOptions): Promise<void> {
    const { durability, locks, skipsLocked = false, isLong = false } = options;
    const settings = `SELECT pg_backend_pid() AS pid, set_config('skein.user_id', $1, true),
      set_config('skein.run_user', $2, true), set_config('idle_in_transaction_session_timeout', $3, true),
      set_config('lock_timeout', $4, true)`;
    const user = actor === everyUser ? everyUserKey : userKey(actor);
    const runUser = runSettingOf(actor);
    const lock = locks === "gateway" ? "skein gateway" : `skein runs ${runUser}`;
    const [, set, ...results] = await Promise.all([
      client.query("BEGIN"),
      this.#prepare(client, settings, [user, runUser, String(this.#idleMsOf(options)), String(this.#lockMs)]),
      ...(durability === "unsynced" ? [client.query("SET LOCAL synchronous_commit = off")] : []),
      ...(locks === undefined ? [] : [client.query(skipsLocked ? tryLockText : lockText, [lock])]),
      ...(isLong ? [client.query("SET LOCAL lock_timeout = 0")] : []),
    ]);
    if (set?.rows[0]?.pid === (client as DirectConnection & pg.PoolClient).processID)
      this.#direct.add(client);
    if (skipsLocked && results.at(-1)?.rows[0]?.acquired !== true)
      throw new SkeinError("locked", { file: lock, holder: "another process" });
  }

  #sqlOf(client: pg.PoolClient, { isLong = false }: TransactOptions): Sql {
    const limit = isLong ? { query_timeout: longest } : {};
    return async (text, values = []) => (await this.#prepare(client, text, values, limit)).rows;
  }

  /**
   * Planning a statement takes longer than executing it, so a statement is named and prepared if possible. A text
   * without values can consist of several statements, which cannot be prepared.
   */
  #prepare(
    client: pg.PoolClient,
    text: string,
    values: readonly SqlValue[],
    limit: { readonly query_timeout?: number } = {},
  ): Promise<pg.QueryResult> {
    const isPrepared = values.length > 0 && this.#direct.has(client);
    const name = isPrepared ? this.#nameOf(text) : undefined;
    return client.query({ ...present({ name }), ...limit, text, values: [...values] });
  }

  /** Returns the same name for the same text. Once the limit is reached, new texts are not prepared. */
  #nameOf(text: string): string | undefined {
    const known = this.#statementNames.get(text);
    if (known !== undefined || this.#statementNames.size >= mostPrepared) return known;
    const name = `skein_${this.#statementNames.size}`;
    this.#statementNames.set(text, name);
    return name;
  }

  async #retry<T>(isRepeatable: boolean, attempt: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    // Once an attempt might have been stored, the errors of later attempts do not change that.
    let outcome: Outcome = "not stored";
    let firstLostAt: number | null = null;
    for (let lost = 0, conflicts = 0; ; ) {
      try {
        return await this.#attempt(attempt);
      } catch (thrown) {
        const error = thrown instanceof FailedAttempt ? thrown.cause : thrown;
        if (thrown instanceof FailedAttempt && thrown.outcome === "unknown") outcome = "unknown";
        if ((isConflictWithOthers(error) || isPlanOutdated(error)) && conflicts++ < mostConflicts) continue;
        firstLostAt ??= performance.now();
        const delay = performance.now() - firstLostAt < retryMs ? this.#delays[lost++] : undefined;
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
    if (isConnectionLost(failed) || isPlanOutdated(failed)) return client.release(true);
    await client.query("ROLLBACK").then(
      () => client.release(),
      (broken: Error) => client.release(broken),
    );
  }
}

/**
 * Keeps the server from ending a transaction while its script computes. If the process is paused, the server still ends
 * it. Returns a function that must be called before the transaction ends.
 */
function keepActive(client: pg.PoolClient, idleMs: number): () => void {
  let isAnswered = true;
  const send = async () => {
    if (!isAnswered) return;
    isAnswered = false;
    // Waits for the script's current statement, which has no timeout. If it fails, so does the script.
    await client.query({ text: "SELECT", query_timeout: longest } as pg.QueryConfig).catch(() => undefined);
    isAnswered = true;
  };
  const timer = setInterval(() => void send(), idleMs / 8);
  return () => clearInterval(timer);
}

/** The lock is released at the end of the transaction. */
export const lockText = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
const tryLockText = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0)) AS acquired";

/** Starts with a letter for a user, because an empty setting means that no user is set. */
function runSettingOf(actor: Actor): string {
  return actor === everyUser ? "*" : `u${encodeText(actor ?? "")}`;
}

function closedError(): SkeinError {
  return new SkeinError("unavailable", { problem: "The store is closed", advice: "Open it again" });
}

function databaseName(url: string): string {
  if (!URL.canParse(url)) return "PostgreSQL";
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
