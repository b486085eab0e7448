import type { TestContext } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import type { IdSource } from "../../src/core/ids.ts";
import { migrateDatabase } from "../../src/store/postgres/migrate.ts";
import { gatewayTables } from "../../src/store/postgres/schema-gateway.ts";
import { runTables } from "../../src/store/postgres/schema-runs.ts";
import { userTables } from "../../src/store/postgres/schema-tables.ts";
import type { BackendOptions } from "../../src/store/postgres/store.ts";
import { PostgresBackend } from "../../src/store/postgres/store.ts";
import type { WorkingStore } from "../../src/store/work.ts";
import type { TestDatabase } from "./postgres-server.ts";
import { DatabaseServer, findServer, migrator, roles, serverFor } from "./postgres-server.ts";

export type { TestDatabase } from "./postgres-server.ts";
export { migrator, roles } from "./postgres-server.ts";

const templateName = "skein_template";

/** Creates databases with empty tables, unless they are created without them from `template1`. */
export class TestServer extends DatabaseServer {
  override async createDatabase(template = templateName): Promise<TestDatabase> {
    if (template === templateName) await this.#createTemplate();
    return super.createDatabase(template);
  }

  /** Creates the template once. It gets its name only when it is complete. */
  async #createTemplate(): Promise<void> {
    const find = `SELECT FROM pg_database WHERE datname = '${templateName}'`;
    const isThere = async () => (await this.administer("postgres", find))[0]?.rowCount === 1;
    if (await isThere()) return;
    await this.createRoles();
    const { name, url, drop } = await this.createDatabase("template1");
    await migrateDatabase({ url: url(migrator), roles });
    const renamed = this.administer("postgres", `ALTER DATABASE ${name} RENAME TO ${templateName}`);
    await renamed.catch(async (error: unknown) => {
      await drop();
      if (!(await isThere())) throw error;
    });
  }
}

/** Returns the run's server. Skips the test if there is none. */
export async function postgresFor(context: TestContext): Promise<TestServer> {
  return new TestServer((await serverFor(context)).port);
}

/** Empty databases that earlier tests of this process have used. */
const unused: TestDatabase[] = [];

/** Returns a database that nothing else uses, and a function that empties it for the next test. */
export async function borrowDatabase(): Promise<{ database: TestDatabase; giveBack(): Promise<void> }> {
  const found = await findServer();
  if (typeof found === "string") throw new Error(found);
  const server = new TestServer(found.port);
  const database = unused.pop() ?? (await server.createDatabase());
  // Much faster than creating and dropping a database.
  const wipe = [...userTables, ...runTables, ...gatewayTables]
    .map((table) => `DELETE FROM skein.${table};`)
    .join("\n");
  return {
    database,
    giveBack: async () => {
      await server.administer(database.name, wipe);
      unused.push(database);
    },
  };
}

interface PostgresStoreOptions extends BackendOptions {
  readonly clock?: Clock;
  readonly newId?: IdSource;
}

/** Opens a store with connections of its own in a migrated database. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<WorkingStore> {
  const backend = await PostgresBackend.open(options);
  return { ...backend.openStore(options), close: () => backend.close() };
}

/** Opens an empty store. One role owns its tables and serves clients. */
export async function openPostgresForTest(
  options: Partial<PostgresStoreOptions> = {},
): Promise<WorkingStore> {
  const { database, giveBack } = await borrowDatabase();
  const store = await openPostgresStore({
    url: database.url(migrator),
    maxConnections: 5,
    patienceMs: 0,
    ...options,
  });
  return {
    ...store,
    close: async () => {
      await store.close();
      await giveBack();
    },
  };
}
