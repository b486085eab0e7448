import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import type { IdSource } from "../../core/ids.ts";
import { createIdSource } from "../../core/ids.ts";
import { ChangeFeed } from "../change-feed.ts";
import type { Store } from "../contract.ts";
import { withScopeChecks } from "../rules.ts";
import type { BlobBytes } from "./blobs.ts";
import { blobTable, postgresBlobs } from "./blobs.ts";
import type { DatabaseOptions } from "./database.ts";
import { PostgresDatabase } from "./database.ts";
import { checkDatabase } from "./migrate.ts";
import { postgresSearch } from "./search.ts";
import { SessionAccess } from "./session-access.ts";
import { purgeUserRows } from "./session-erasure.ts";
import { PostgresSessions } from "./sessions.ts";
import { postgresState } from "./state.ts";

export interface PostgresStoreOptions extends DatabaseOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
  /** Keeps blobs elsewhere, for example in an object store. Defaults to a table. */
  readonly blobs?: BlobBytes;
}

/**
 * Opens a store in a migrated PostgreSQL database. Any number of processes can use the same database. Throws
 * `database_unavailable`, `database_too_old`, `database_behind` or `database_ahead`.
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { clock = systemClock } = options;
  const newId = options.newId ?? createIdSource(clock);
  const database = await PostgresDatabase.create(options);
  try {
    await database.transact(null, (sql) => checkDatabase(sql, database.name), { isRepeatable: true });
  } catch (error) {
    await database.close();
    throw error;
  }
  const feed = new ChangeFeed();
  const access = new SessionAccess({ database, feed, clock, newId });
  const bytes = options.blobs ?? blobTable(database);
  return withScopeChecks({
    sessions: new PostgresSessions(access, bytes),
    search: postgresSearch(database),
    state: postgresState(access),
    blobs: postgresBlobs(bytes),
    watch: feed,
    purgeUser: async (userId) => {
      const sessions = await purgeUserRows(access, userId);
      await bytes.purgeUser(userId);
      return { sessions };
    },
    close: () => database.close(),
  });
}
