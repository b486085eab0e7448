import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import type { TestContext } from "vitest";
import type { DatabaseRoles } from "../../src/store/postgres/migrate.ts";
import { migrateDatabase } from "../../src/store/postgres/migrate.ts";
import { runTables } from "../../src/store/postgres/schema-runs.ts";
import { userTables } from "../../src/store/postgres/schema-tables.ts";
import type { PostgresStoreOptions } from "../../src/store/postgres/store.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import type { WorkingStore } from "../../src/store/work.ts";
import type { KeptServer } from "./postgres-broker.ts";

/** Roles as in production. The administrator of the test server is `postgres`. */
export const roles: DatabaseRoles = { app: "skein_app", worker: "skein_worker" };
export const migrator = "skein_migrator";

/** A database of its own, with empty tables unless it was created without them. */
export interface TestDatabase {
  readonly name: string;
  /** The address for a role. Defaults to the role that serves clients. */
  url(role?: string): string;
  drop(): Promise<void>;
}

/** Creates databases on a server. */
export class TestServer {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  urlOf(database: string, role: string): string {
    return `postgres://${role}@127.0.0.1:${this.#port}/${database}`;
  }

  /** Runs statements as the administrator. */
  async administer(database: string, ...statements: readonly string[]): Promise<pg.QueryResult[]> {
    const client = new pg.Client({ connectionString: this.urlOf(database, "postgres") });
    client.on("error", () => undefined);
    await client.connect();
    try {
      const results: pg.QueryResult[] = [];
      for (const statement of statements) results.push(await client.query(statement));
      return results;
    } finally {
      await client.end();
    }
  }

  /** Creates a database. `template1` has no tables. */
  async createDatabase(template = "skein_template"): Promise<TestDatabase> {
    if (template === "skein_template") await this.#createTemplate();
    const name = `t${crypto.randomUUID().replaceAll("-", "")}`;
    await this.administer("postgres", `CREATE DATABASE ${name} TEMPLATE ${template} OWNER ${migrator}`);
    return {
      name,
      url: (role = roles.app) => this.urlOf(name, role),
      drop: async () => void (await this.administer("postgres", `DROP DATABASE ${name} WITH (FORCE)`)),
    };
  }

  /** Creates the roles. Another test file might do the same at this moment. */
  async createRoles(): Promise<void> {
    const isThere = await this.administer("postgres", `SELECT FROM pg_roles WHERE rolname = '${migrator}'`);
    if (isThere[0]?.rowCount === 1) return;
    await this.administer(
      "postgres",
      `BEGIN; SELECT pg_advisory_xact_lock(1); DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${migrator}') THEN
          CREATE ROLE ${roles.app} LOGIN;
          CREATE ROLE ${roles.worker} LOGIN BYPASSRLS;
          CREATE ROLE ${migrator} LOGIN IN ROLE ${roles.worker};
        END IF; END $$; COMMIT`,
    );
  }

  /** Creates the template once. It gets its name only when it is complete. */
  async #createTemplate(): Promise<void> {
    const find = "SELECT FROM pg_database WHERE datname = 'skein_template'";
    const isThere = async () => (await this.administer("postgres", find))[0]?.rowCount === 1;
    if (await isThere()) return;
    await this.createRoles();
    const { name, url, drop } = await this.createDatabase("template1");
    await migrateDatabase({ url: url(migrator), roles });
    const renamed = this.administer("postgres", `ALTER DATABASE ${name} RENAME TO skein_template`);
    await renamed.catch(async (error: unknown) => {
      await drop();
      if (!(await isThere())) throw error;
    });
  }
}

async function askBroker(): Promise<KeptServer> {
  const socket = connect(Number(process.env.SKEIN_TEST_POSTGRES), "127.0.0.1");
  await once(socket, "connect");
  return JSON.parse(await text(socket)) as KeptServer;
}

/** Returns the run's server, or why it is missing. Throws instead if `SKEIN_NEEDS_POSTGRES` is 1. */
export async function findServer(): Promise<TestServer | string> {
  const kept = await askBroker();
  if ("port" in kept) return new TestServer(kept.port);
  if (process.env.SKEIN_NEEDS_POSTGRES === "1") throw new Error(`PostgreSQL is missing: ${kept.missing}`);
  return `PostgreSQL cannot run here: ${kept.missing}`;
}

let found: Promise<TestServer | string> | null = null;

/** Returns the run's server. Skips the test if there is none. */
export async function postgresFor(context: TestContext): Promise<TestServer> {
  found ??= findServer();
  const server = await found;
  return typeof server === "string" ? context.skip(server) : server;
}

/** Empty databases that earlier tests of this process have used. */
const unused: TestDatabase[] = [];

/** Returns a database that nothing else uses, and a function that empties it for the next test. */
export async function borrowDatabase(): Promise<{ database: TestDatabase; giveBack(): Promise<void> }> {
  found ??= findServer();
  const server = await found;
  if (typeof server === "string") throw new Error(server);
  const database = unused.pop() ?? (await server.createDatabase());
  // Much faster than creating and dropping a database.
  const wipe = [...userTables, ...runTables].map((table) => `DELETE FROM skein.${table};`).join("\n");
  return {
    database,
    giveBack: async () => {
      await server.administer(database.name, wipe);
      unused.push(database);
    },
  };
}

/** Opens an empty store. One role owns its tables and serves clients. */
export async function openPostgresForTest(
  options: Partial<PostgresStoreOptions> = {},
): Promise<WorkingStore> {
  const { database, giveBack } = await borrowDatabase();
  const store = await openPostgresStore({ url: database.url(migrator), maxConnections: 5, ...options });
  return {
    ...store,
    close: async () => {
      await store.close();
      await giveBack();
    },
  };
}
