import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { KeyedMutex } from "../../core/concurrency.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { ChangeFeed } from "../change-feed.ts";
import { checkScope, withScopeChecks } from "../rules.ts";
import type { WorkingStore } from "../work.ts";
import { Attendance } from "../work.ts";
import type { BlobBytes } from "./blobs.ts";
import { blobTable, postgresBlobs } from "./blobs.ts";
import type { DatabaseOptions } from "./database.ts";
import { PostgresDatabase } from "./database.ts";
import { PostgresEngine } from "./ledger-engine.ts";
import { userKey } from "./lookup-text.ts";
import { checkDatabase } from "./migrate.ts";
import { postgresSearch } from "./search.ts";
import { SessionAccess } from "./session-access.ts";
import { purgeUserRows } from "./session-erasure.ts";
import { findRef, listUsers } from "./session-lists.ts";
import { PostgresSessions } from "./sessions.ts";
import { postgresState } from "./state.ts";
import { WakeUps } from "./wake-ups.ts";

export interface PostgresStoreOptions extends DatabaseOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
  /** Keeps blobs elsewhere, for example in an object store. Defaults to a table. */
  readonly blobs?: BlobBytes;
  /** The address for the role that works for all users, if it is not the owner of the tables that serves clients. */
  readonly workerUrl?: string;
}

/**
 * Opens a store in a migrated PostgreSQL database. Any number of processes can use the same database. Throws
 * `database_unavailable`, `database_too_old`, `database_behind` or `database_ahead`.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<WorkingStore> {
  const { clock = systemClock } = options;
  const newId = options.newId ?? createIdSource(clock);
  const database = await PostgresDatabase.create(options);
  try {
    await database.transact(null, (sql) => checkDatabase(sql, database.name), { isRepeatable: true });
  } catch (error) {
    await database.close();
    throw error;
  }
  const { workerUrl } = options;
  const worker =
    workerUrl === undefined ? database : await PostgresDatabase.create({ ...options, url: workerUrl });
  const feed = new ChangeFeed();
  const attendance = new Attendance();
  const access = new SessionAccess({ database, feed, attendance, clock, newId });
  const bytes = options.blobs ?? blobTable(database);
  const sessions = new PostgresSessions(access, bytes);
  const wakeUps = new WakeUps(() => worker.openConnection(), newId());
  for (const each of [database, worker]) each.onChange = () => wakeUps.announce();
  const engine = new PostgresEngine(worker, wakeUps);
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
    close: async () => {
      await wakeUps.close();
      await worker.close();
      await database.close();
    },
  });
  return {
    ...store,
    work: {
      engine,
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
      // Deleted rows leave the files when PostgreSQL vacuums them.
      erase: () => undefined,
      // Every change is one transaction.
      settle: async () => undefined,
    },
  };
}
