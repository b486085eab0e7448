import type { Clock } from "../../core/clock.ts";
import { within } from "../../core/concurrency.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { thrownText } from "../../core/text.ts";
import { ChangeFeed } from "../change-feed.ts";
import { checkScope, withScopeChecks } from "../rules.ts";
import type { SharedDatabase, WorkingBackend, WorkingStore } from "../work.ts";
import { Attendance } from "../work.ts";
import type { BlobBytes } from "./blobs.ts";
import { blobTable, postgresBlobs } from "./blobs.ts";
import type { DatabaseOptions, Sql } from "./database.ts";
import { PostgresDatabase } from "./database.ts";
import { DatabaseTime } from "./database-time.ts";
import { PostgresFeed } from "./feed.ts";
import { PostgresEngine } from "./ledger-engine.ts";
import { checkDatabase, checkWritable } from "./migrate.ts";
import { renewWords } from "./renew-words.ts";
import { S3Blobs } from "./s3-blobs.ts";
import type { S3Options } from "./s3-client.ts";
import { postgresSearch } from "./search.ts";
import { SessionAccess } from "./session-access.ts";
import { purgeUserRows } from "./session-erasure.ts";
import { findRef, listEveryUser, listUsers } from "./session-lists.ts";
import { PostgresSessions } from "./sessions.ts";
import { postgresState } from "./state.ts";
import { WakeUps } from "./wake-ups.ts";

export interface BackendOptions extends DatabaseOptions {
  /** Keeps blobs in an object store instead of a table. */
  readonly s3?: S3Options;
  /** The address with the role that works for all users. Defaults to `url`, whose role must then own the tables. */
  readonly workerUrl?: string;
  /** How long a process owns its runs after it last renewed its leases. Defaults to 8,000 milliseconds. */
  readonly leaseMs?: number;
  /**
   * How long the database must have been answering before this process takes over runs from other processes. Without
   * this delay, the process would take them over after each restart of the server. Defaults to `leaseMs`.
   */
  readonly patienceMs?: number;
}

const defaultLeaseMs = 8000;
/** How long closing waits for a database that does not answer. */
const closeMs = 2000;
/** A database that takes longer to answer is not ready. */
const answerMs = 5000;

/** This process's connections to a database, shared by all stores that it opens. */
export class PostgresBackend implements WorkingBackend {
  readonly engine: PostgresEngine;
  readonly shared: SharedDatabase;
  /** Where blobs are kept if they are not in a table. */
  readonly objectStore: S3Blobs | null;
  readonly #events: PostgresFeed;
  readonly #database: PostgresDatabase;
  readonly #worker: PostgresDatabase;
  readonly #blobs: BlobBytes;
  readonly #wakeUps: WakeUps;
  readonly #time: DatabaseTime;
  #onError: WorkingBackend["onError"] = null;
  #reported = "";
  readonly #closing = new AbortController();
  readonly #renewing: Promise<void>;
  /** An error that occurred before a listener was set. */
  #unheard: unknown = null;

  private constructor(
    database: PostgresDatabase,
    worker: PostgresDatabase,
    time: DatabaseTime,
    { leaseMs = defaultLeaseMs, s3 }: BackendOptions,
  ) {
    this.#database = database;
    this.#worker = worker;
    this.objectStore = s3 === undefined ? null : new S3Blobs(s3, blobTable(database));
    this.#blobs = this.objectStore ?? blobTable(database);
    this.#time = time;
    const name = createIdSource()();
    this.#events = new PostgresFeed({
      database: worker,
      name,
      announce: () => this.#wakeUps.announce(),
      report: (error) => this.#report(error),
    });
    this.#wakeUps = new WakeUps({
      connect: () => worker.openConnection(),
      answers: () =>
        worker.read(null, "SELECT").then(
          () => true,
          () => false,
        ),
      name,
      beforeNotify: () => this.#events.flush(),
      beforeWake: () => this.#look(),
      report: (error) => this.#report(error),
    });
    this.engine = new PostgresEngine(worker, this.#wakeUps);
    const [events, clock] = [this.#events, this.#time];
    this.shared = {
      events,
      clock,
      leaseMs,
      canTakeOver: () => clock.canTakeOver(),
      findProblems: () => this.findProblems(),
    };
    for (const each of [database, worker]) each.onChange = () => this.#wakeUps.announce();
    this.#renewing = renewWords(worker, this.#closing.signal).catch((error: unknown) => this.#report(error));
  }

  /**
   * Connects to a migrated database. Throws `database_unavailable`, `database_too_old`, `database_behind` or
   * `database_ahead`.
   */
  static async open(options: BackendOptions): Promise<PostgresBackend> {
    const { workerUrl } = options;
    const database = await PostgresDatabase.create(options);
    const worker =
      workerUrl === undefined ? database : await PostgresDatabase.create({ ...options, url: workerUrl });
    try {
      await checkUsable(database);
      const time = new DatabaseTime(database, options.patienceMs ?? options.leaseMs ?? defaultLeaseMs);
      await time.measure();
      return new PostgresBackend(database, worker, time, options);
    } catch (error) {
      await worker.close();
      await database.close();
      throw error;
    }
  }

  openStore(options: { readonly clock?: Clock; readonly newId?: IdSource } = {}): WorkingStore {
    const { engine, shared } = this;
    const { clock = shared.clock, newId = createIdSource(clock) } = options;
    const [database, worker, bytes] = [this.#database, this.#worker, this.#blobs];
    const feed = new ChangeFeed();
    const attendance = new Attendance();
    const access = new SessionAccess({ database, feed, attendance, clock, newId });
    const sessions = new PostgresSessions(access, bytes);
    const store = withScopeChecks({
      sessions,
      search: postgresSearch(database),
      state: postgresState(access),
      blobs: postgresBlobs(bytes),
      watch: feed,
      purgeUser: async (userId) => {
        const sessions = await purgeUserRows(access, userId);
        await bytes.purgeUser(userId);
        return { sessions };
      },
      close: async () => undefined,
    });
    return {
      ...store,
      work: {
        engine,
        shared,
        ledger: null,
        attend: (attendant) => {
          attendance.attendant = attendant;
        },
        find: findRef,
        locate: (userId, key) => engine.read(() => findRef(userId, { key })),
        create: async (scope, init, act) => {
          checkScope(scope);
          return sessions.create(scope, init, act);
        },
        watch: (listener) => feed.subscribe("all users", listener),
        users: () => listUsers(worker),
        everyUser: listEveryUser(worker),
        // Deleted rows leave the files when PostgreSQL vacuums them.
        erase: () => undefined,
        // Every change is one transaction.
        settle: async () => undefined,
      },
    };
  }

  get onError(): WorkingBackend["onError"] {
    return this.#onError;
  }

  set onError(listener: WorkingBackend["onError"]) {
    this.#onError = listener;
    if (this.#unheard !== null) listener?.(this.#unheard);
    this.#unheard = null;
  }

  /** Throws if the database cannot be used. */
  async check(): Promise<void> {
    for (const each of new Set([this.#database, this.#worker])) await checkUsable(each, checkWritable);
  }

  async findProblems(): Promise<readonly string[]> {
    try {
      const isAnswered = await within(answerMs, this.check());
      if (!isAnswered) throw new Error(`The database has not answered for ${answerMs / 1000} seconds.`);
      this.#reported = "";
      return [];
    } catch (error) {
      this.#report(error);
      return [thrownText(error)];
    }
  }

  /** Measures the database's time, then delivers events from other processes. */
  async #look(): Promise<void> {
    if (!this.#events.hasJoined) return;
    try {
      await this.#time.measure();
      this.#reported = "";
    } catch (error) {
      this.#report(error);
    }
    await this.#events.look();
  }

  /**
   * Skips an error that repeats the previous one, because each attempt fails in the same way while the database is
   * down.
   */
  #report(error: unknown): void {
    const text = thrownText(error);
    if (text !== this.#reported && this.#onError === null) this.#unheard = error;
    if (text !== this.#reported) this.#onError?.(error);
    this.#reported = text;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await within(closeMs, this.#renewing);
    // Closing the connections ends attempts that are still being repeated.
    await within(closeMs, this.#wakeUps.close());
    await within(closeMs, this.#events.close());
    await this.#worker.close();
    await this.#database.close();
  }
}

/** Throws if the database does not answer, has another version, or fails another check. */
async function checkUsable(database: PostgresDatabase, check?: typeof checkWritable): Promise<void> {
  const script = async (sql: Sql) => {
    await checkDatabase(sql, database.name);
    await check?.(sql, database.name);
  };
  await database.transact(null, script, { isRepeatable: true });
}
