import { codeOf, SkeinError } from "../../core/errors.ts";
import type { Script } from "../../core/script.ts";
import { queryRow } from "../../core/script.ts";
import type { Backend } from "../contract.ts";
import { objectStoreFact, putFact, unfinishedError, unfinishedFact } from "../migrate/ledger-tables.ts";
import { migrateDatabase } from "./migrate.ts";
import type { S3Options } from "./s3-client.ts";
import { PostgresBackend } from "./store.ts";

/** Addresses have the form `postgres://<role>:<password>@<host>/<database>`. */
export interface PostgresOptions {
  /** The address of the database, with the role that serves clients. */
  readonly url: string;
  /** The address with the role that works for all users. Defaults to `url`, whose role must then own the tables. */
  readonly workerUrl?: string;
  /** The address with the role that owns the tables. Defaults to `url`. */
  readonly migratorUrl?: string;
  /**
   * The address for this process's connection that receives notifications from other processes. Needed if `url` or
   * `workerUrl` points to PgBouncer in transaction mode, which delivers no notifications. Any role will do.
   */
  readonly directUrl?: string;
  /** The maximum number of connections that this process opens to each of `url` and `workerUrl`. Defaults to 10. */
  readonly maxConnections?: number;
  /** Keeps images and large outputs in an S3-compatible object store. By default, they are stored in a table. */
  readonly s3?: S3Options;
}

/**
 * Connects to a PostgreSQL database, and creates or updates its tables if necessary. Any number of processes and
 * machines can use the same database. Needs the package `pg`. Throws `database_unavailable`, `database_too_old` or
 * `database_ahead`.
 *
 * @example
 * ```ts
 * import { createSkein } from "skein";
 * import { openPostgres } from "skein/postgres";
 * const backend = await openPostgres({ url: "postgres://skein:secret@db.example.org/skein" });
 * const skein = await createSkein({ backend });
 * const { reply } = await skein.session({ userId: "alice", sessionId: "trip" }).send("Plan three days in Kyoto").result;
 * await skein.close();
 * await backend.close();
 * ```
 */
export async function openPostgres(options: PostgresOptions): Promise<Backend> {
  const backend = await openUpdated(options);
  try {
    await checkFacts(backend);
    return backend;
  } catch (error) {
    await backend.close();
    throw error;
  }
}

async function openUpdated(options: PostgresOptions): Promise<PostgresBackend> {
  // With `migratorUrl`, the tables are always updated, because their owner also grants privileges to the other roles,
  // which might be new.
  if (options.migratorUrl === undefined)
    try {
      return await PostgresBackend.open(options);
    } catch (error) {
      if (codeOf(error) !== "database_behind") throw error;
    }
  await updateTables(options);
  return PostgresBackend.open(options);
}

/** Creates or updates the tables, and grants the roles their privileges. */
export async function updateTables({ url, workerUrl, migratorUrl }: PostgresOptions): Promise<void> {
  const roles = workerUrl === undefined ? {} : { roles: { app: roleIn(url), worker: roleIn(workerUrl) } };
  await migrateDatabase({ url: migratorUrl ?? url, ...roles });
}

async function checkFacts({ engine, objectStore }: PostgresBackend): Promise<void> {
  try {
    if ((await engine.read(() => readFact(unfinishedFact))) !== null) throw unfinishedError();
    await objectStore?.check();
    const used = objectStore?.name ?? null;
    const known = await engine.read(() => readFact(objectStoreFact));
    if (known !== null && known !== used) throw otherObjectStore(known);
    if (known === null && used !== null)
      await engine.change("synced", "gateway", () => putFact(objectStoreFact, used));
  } catch (error) {
    // Without the privilege to read facts, continue: opening the store reports which role is missing.
    if (codeOf((error as Error).cause) !== "42501") throw error;
  }
}

/** A process with another configuration would not find the blobs. */
function otherObjectStore(known: string): SkeinError {
  return new SkeinError("unavailable", {
    problem: `This database's images and large outputs are in ${known}`,
    advice: "Configure the same object store in blobs.s3",
  });
}

function* readFact(name: string): Script<string | null> {
  const row = yield* queryRow("SELECT value FROM facts WHERE name = ?", name);
  return row === undefined ? null : String(row.value);
}

function roleIn(url: string): string {
  const { username, host } = new URL(url);
  if (username !== "") return decodeURIComponent(username);
  throw new SkeinError("invalid_arguments", {
    problem: `The address of the database at ${host} names no role`,
    advice: "Write it as postgres://<role>:<password>@<host>/<database>",
  });
}
