import type { Clock } from "../../core/clock.ts";
import { KeyedMutex } from "../../core/concurrency.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { thrownText } from "../../core/text.ts";
import { ChangeFeed } from "../change-feed.ts";
import { checkScope, withScopeChecks } from "../rules.ts";
import type { Backend, SharedDatabase, WorkingStore } from "../work.ts";
import { Attendance } from "../work.ts";
import type { BlobBytes } from "./blobs.ts";
import { blobTable, postgresBlobs } from "./blobs.ts";
import type { DatabaseOptions } from "./database.ts";
import { PostgresDatabase } from "./database.ts";
import { DatabaseTime } from "./database-time.ts";
import { PostgresFeed } from "./feed.ts";
import { PostgresEngine } from "./ledger-engine.ts";
import { userKey } from "./lookup-text.ts";
import { checkDatabase } from "./migrate.ts";
import { postgresSearch } from "./search.ts";
import { SessionAccess } from "./session-access.ts";
import { purgeUserRows } from "./session-erasure.ts";
import { findRef, listEveryUser, listUsers } from "./session-lists.ts";
import { PostgresSessions } from "./sessions.ts";
import { postgresState } from "./state.ts";
import { WakeUps } from "./wake-ups.ts";

export interface PostgresOptions extends DatabaseOptions {
  /** Keeps blobs elsewhere, for example in an object store. Defaults to a table. */
  readonly blobs?: BlobBytes;
  /** The address for the role that works for all users, if it is not the owner of the tables that serves clients. */
  readonly workerUrl?: string;
  /** How long a process that does not renew its leases still owns its runs. Defaults to 8,000 milliseconds. */
  readonly leaseMs?: number;
  /**
   * How long the database must have answered before this process takes over the runs of others. Otherwise, it would do so
   * after each restart of the server. Defaults to `leaseMs`.
   */
  readonly patienceMs?: number;
  /** Receives errors that no caller is waiting for. */
  readonly report?: (error: unknown) => void;
}

export interface PostgresStoreOptions extends PostgresOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

/**
 * Opens a store in a migrated PostgreSQL database. Any number of processes can use the same database. Throws
 * `database_unavailable`, `database_too_old`, `database_behind` or `database_ahead`.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<WorkingStore> {
  const backend = await PostgresBackend.open(options);
  const { clock = backend.shared.clock, newId = createIdSource(clock) } = options;
  const store = backend.openStore({ clock, newId });
  return { ...store, close: () => backend.close() };
}

/** This process's connections to a database. All stores that it opens there share them. */
export class PostgresBackend implements Backend {
  readonly engine: PostgresEngine;
  readonly shared: SharedDatabase;
  readonly #events: PostgresFeed;
  readonly #database: PostgresDatabase;
  readonly #worker: PostgresDatabase;
  readonly #blobs: BlobBytes;
  readonly #wakeUps: WakeUps;

  private constructor(parts: {
    readonly database: PostgresDatabase;
    readonly worker: PostgresDatabase;
    readonly blobs: BlobBytes;
    readonly events: PostgresFeed;
    readonly time: DatabaseTime;
    readonly leaseMs: number;
    readonly wakeUps: WakeUps;
  }) {
    const { database, worker, blobs, events, time, leaseMs, wakeUps } = parts;
    this.engine = new PostgresEngine(worker, wakeUps);
    this.shared = { events, clock: time, leaseMs, canTakeOver: () => time.canTakeOver() };
    this.#events = events;
    this.#database = database;
    this.#worker = worker;
    this.#blobs = blobs;
    this.#wakeUps = wakeUps;
    for (const each of [database, worker]) each.onChange = () => wakeUps.announce();
  }

  static async open(options: PostgresOptions): Promise<PostgresBackend> {
    const { workerUrl, leaseMs = 8000, patienceMs = leaseMs, report = () => undefined } = options;
    const database = await PostgresDatabase.create(options);
    const worker =
      workerUrl === undefined ? database : await PostgresDatabase.create({ ...options, url: workerUrl });
    try {
      await checkUsable(database);
      const name = createIdSource()();
      const time = new DatabaseTime(database, patienceMs);
      await time.measure();
      const events: PostgresFeed = new PostgresFeed({
        database: worker,
        name,
        announce: () => wakeUps.announce(),
        report,
      });
      const wakeUps = new WakeUps({
        connect: () => worker.openConnection(),
        name,
        beforeNotify: () => events.flush(),
        beforeWake: async () => {
          if (!events.hasJoined) return;
          await time.measure().catch(report);
          await events.look();
        },
      });
      const blobs = options.blobs ?? blobTable(database);
      return new PostgresBackend({ database, worker, blobs, events, time, leaseMs, wakeUps });
    } catch (error) {
      await worker.close();
      await database.close();
      throw error;
    }
  }

  openStore({ clock, newId }: { readonly clock: Clock; readonly newId: IdSource }): WorkingStore {
    const { engine, shared } = this;
    const [database, worker, bytes] = [this.#database, this.#worker, this.#blobs];
    const feed = new ChangeFeed();
    const attendance = new Attendance();
    const access = new SessionAccess({ database, feed, attendance, clock, newId });
    const sessions = new PostgresSessions(access, bytes);
    const locating = new KeyedMutex();
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
        // Messages that a process sends to a session one after the other are accepted in that order.
        locate: (userId, key) =>
          locating.run(`${userKey(userId)}\n${key}`, () => engine.read(() => findRef(userId, { key }))),
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

  async findProblems(): Promise<readonly string[]> {
    try {
      await checkUsable(this.#database);
      return [];
    } catch (error) {
      return [thrownText(error)];
    }
  }

  async close(): Promise<void> {
    await this.#wakeUps.close();
    await this.#events.close();
    await this.#worker.close();
    await this.#database.close();
  }
}

/** Throws if the database does not answer, has another version, or only accepts reads. */
async function checkUsable(database: PostgresDatabase): Promise<void> {
  await database.transact(null, (sql) => checkDatabase(sql, database.name), { isRepeatable: true });
}
