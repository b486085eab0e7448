import { SkeinError } from "../../core/errors.ts";
import type { DatabaseOptions, Sql } from "./database.ts";
import { PostgresDatabase } from "./database.ts";
import { createFunctions } from "./schema-functions.ts";
import { createGatewayTables, gatewayTables } from "./schema-gateway.ts";
import {
  createLaneFunctions,
  createRunTables,
  createSchedules,
  freeLoopTurns,
  runTables,
} from "./schema-runs.ts";
import { changeSearch, renewCodes, speedUpSearch } from "./schema-search.ts";
import { createEmbeddings, createTables, userTables } from "./schema-tables.ts";

/** Numbered from 1. A migration that was released is never changed, only followed by another one. */
export const migrations: readonly (() => string)[] = [
  () => `${createTables()}\n${createFunctions()}`,
  createRunTables,
  createGatewayTables,
  changeSearch,
  renewCodes,
  createLaneFunctions,
  createEmbeddings,
  createSchedules,
  speedUpSearch,
  freeLoopTurns,
];

export const schemaVersion = migrations.length;

/** The oldest supported major version of PostgreSQL. */
const oldestServer = 15;

/** The key of the advisory lock for migrations. Any number works that no other program uses as a lock. */
const migrationLock = 7_233_461_902;

/** The database roles. They must exist before the migration, which grants them privileges. */
export interface DatabaseRoles {
  /** Serves clients. Must not be able to bypass row-level security. */
  readonly app: string;
  /** Works for all users and owns the search function. Has `BYPASSRLS` and never serves a client. */
  readonly worker: string;
}

export interface MigrateOptions extends DatabaseOptions {
  /** If absent, the role that migrates the database also serves clients. */
  readonly roles?: DatabaseRoles;
}

/**
 * Creates or updates the tables. Several processes can do this at the same time: an advisory lock lets one of them
 * migrate, and the others then find nothing to do. Either all migrations are applied or none.
 */
export async function migrateDatabase(options: MigrateOptions): Promise<void> {
  const database = await PostgresDatabase.create({ ...options, maxConnections: 1 });
  try {
    const update = async (sql: Sql) => {
      await checkServer(sql, database.name);
      await sql("SELECT pg_advisory_xact_lock($1)", [migrationLock]);
      const found = await appliedVersion(sql);
      if (found > schemaVersion) throwAhead(database.name, found);
      await applyMigrations(sql, found).catch((error: unknown) => {
        if ((error as { readonly code?: unknown }).code !== insufficientPrivilege) throw error;
        throw new SkeinError(
          "database_behind",
          { database: database.name, found, needed: schemaVersion },
          { cause: error },
        );
      });
      if (options.roles !== undefined) await grantRights(sql, options.roles);
      await setWordPolicy(sql);
    };
    await database.transact(null, update, { isLong: true });
  } finally {
    await database.close();
  }
}

async function applyMigrations(sql: Sql, found: number): Promise<void> {
  if (found === 0) await sql("CREATE SCHEMA IF NOT EXISTS skein");
  if (found === 0) await sql(versionTable);
  for (const [index, migration] of migrations.entries()) {
    if (index < found) continue;
    await sql(migration());
    await sql("INSERT INTO skein.migrations (number) VALUES ($1)", [index + 1]);
  }
}

const insufficientPrivilege = "42501";

const versionTable =
  "CREATE TABLE skein.migrations (number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";

/** Rejects a server that is too old, and tables of an older or newer version. */
export async function checkDatabase(sql: Sql, database: string): Promise<void> {
  await checkServer(sql, database);
  const found = await appliedVersion(sql);
  if (found > schemaVersion) throwAhead(database, found);
  if (found < schemaVersion)
    throw new SkeinError("database_behind", { database, found, needed: schemaVersion });
}

/** Rejects a server that accepts only reads, for example a standby. */
export async function checkWritable(sql: Sql, database: string): Promise<void> {
  const [setting] = await sql<{ value: string }>("SELECT current_setting('transaction_read_only') AS value");
  if (setting?.value === "on")
    throw new SkeinError("database_read_only", { database, problem: "it accepts only reads" });
}

async function checkServer(sql: Sql, database: string): Promise<void> {
  const [server] = await sql<{ number: string; version: string }>(
    "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS version",
  );
  const isOld = Number(server?.number ?? 0) < oldestServer * 10_000;
  if (isOld) throw new SkeinError("database_too_old", { database, version: server?.version ?? "unknown" });
}

async function appliedVersion(sql: Sql): Promise<number> {
  const [table] = await sql<{ exists: boolean }>(
    "SELECT to_regclass('skein.migrations') IS NOT NULL AS exists",
  );
  if (table?.exists !== true) return 0;
  const [row] = await sql<{ number: number }>("SELECT max(number) AS number FROM skein.migrations");
  return row?.number ?? 0;
}

function throwAhead(database: string, found: number): never {
  throw new SkeinError("database_ahead", { database, found, needed: schemaVersion });
}

/**
 * Exempts the owner of the tables from the policy on words while it also owns the search function. Under a policy, the
 * function could not use the index on words. Skein's statements still select these rows only by user or by that user's
 * sessions.
 */
async function setWordPolicy(sql: Sql): Promise<void> {
  const [words] = await sql<{ is_forced: boolean; has_worker: boolean }>(
    `SELECT t.relforcerowsecurity AS is_forced, f.proowner <> t.relowner AS has_worker FROM pg_class AS t, pg_proc AS f
     WHERE t.oid = 'skein.entry_search'::regclass AND f.oid = 'skein.search'::regproc AND pg_has_role(t.relowner, 'USAGE')`,
  );
  if (words === undefined || words.is_forced === words.has_worker) return;
  const change = words.has_worker ? "FORCE" : "NO FORCE";
  await sql(`ALTER TABLE skein.entry_search ${change} ROW LEVEL SECURITY`);
}

/** Grants privileges on tables but never on partitions. No policy makes a partition's rows visible. */
async function grantRights(sql: Sql, { app, worker }: DatabaseRoles): Promise<void> {
  const both = `${quoted(app)}, ${quoted(worker)}`;
  const namesOf = (tables: readonly string[]) => tables.map((table) => `skein.${table}`).join(", ");
  await sql(`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA skein FROM PUBLIC`);
  await sql(`GRANT USAGE ON SCHEMA skein TO ${both}`);
  await sql(`GRANT SELECT ON skein.migrations TO ${both}`);
  await sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${namesOf([...userTables, ...runTables])} TO ${both}`);
  await sql(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${namesOf(gatewayTables)} TO ${quoted(worker)}`);
  await sql(`GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA skein TO ${both}`);
  // A role needs this privilege when it becomes the owner of a function.
  await sql(`GRANT CREATE ON SCHEMA skein TO ${quoted(worker)}`);
  await sql(`ALTER FUNCTION skein.search OWNER TO ${quoted(worker)}`);
  await sql(`REVOKE CREATE ON SCHEMA skein FROM ${quoted(worker)}`);
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
