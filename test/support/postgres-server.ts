import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import type { TestContext } from "vitest";
import type { KeptServer } from "./postgres-broker.ts";

/** Databases on the server of the test run. Nothing here depends on Skein. */

/** Roles as in production. The administrator of the test server is `postgres`. */
export const roles = { app: "skein_app", worker: "skein_worker" } as const;
export const migrator = "skein_migrator";

/** A database of its own. */
export interface TestDatabase {
  readonly name: string;
  /** The address for a role. Defaults to the role that serves clients. */
  url(role?: string): string;
  drop(): Promise<void>;
}

/** Creates databases on a server. */
export class DatabaseServer {
  readonly port: number;
  /** The folder of the server's socket, if it can be reached only there. */
  readonly #socket: string | null;

  constructor(port: number, socket: string | null = null) {
    this.port = port;
    this.#socket = socket;
  }

  urlOf(database: string, role: string): string {
    if (this.#socket !== null)
      return `postgres://${role}@localhost:${this.port}/${database}?host=${encodeURIComponent(this.#socket)}`;
    return `postgres://${role}@127.0.0.1:${this.port}/${database}`;
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

  /** Creates a database from a template. The default has no tables. */
  async createDatabase(template = "template1"): Promise<TestDatabase> {
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
}

async function askBroker(): Promise<KeptServer> {
  const socket = connect(Number(process.env.SKEIN_TEST_POSTGRES), "127.0.0.1");
  await once(socket, "connect");
  return JSON.parse(await text(socket)) as KeptServer;
}

let found: Promise<DatabaseServer | string> | null = null;

/** Returns the run's server, or why it is missing. Throws instead if `SKEIN_NEEDS_POSTGRES` is 1. */
export function findServer(): Promise<DatabaseServer | string> {
  found ??= lookForServer();
  return found;
}

async function lookForServer(): Promise<DatabaseServer | string> {
  const kept = await askBroker();
  if ("port" in kept) return new DatabaseServer(kept.port);
  if (process.env.SKEIN_NEEDS_POSTGRES === "1") throw new Error(`PostgreSQL is missing: ${kept.missing}`);
  return `PostgreSQL cannot run here: ${kept.missing}`;
}

/** Returns the run's server. Skips the test if there is none. */
export async function serverFor(context: TestContext): Promise<DatabaseServer> {
  const server = await findServer();
  return typeof server === "string" ? context.skip(server) : server;
}
