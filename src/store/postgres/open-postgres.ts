import { codeOf, SkeinError } from "../../core/errors.ts";
import { queryRow } from "../../core/script.ts";
import type { Backend } from "../contract.ts";
import { unfinishedError, unfinishedFact } from "../migrate/ledger-tables.ts";
import { migrateDatabase } from "./migrate.ts";
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
   * `workerUrl` is PgBouncer in transaction mode, which delivers none. Any role will do.
   */
  readonly directUrl?: string;
  /** The maximum number of connections of this process for each of `url` and `workerUrl`. Defaults to 10. */
  readonly maxConnections?: number;
}

/**
 * Connects to a PostgreSQL database, and creates or updates its tables if they are behind. Any number of processes and
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
    await refuseUnfinished(backend);
    return backend;
  } catch (error) {
    await backend.close();
    throw error;
  }
}

async function openUpdated(options: PostgresOptions): Promise<PostgresBackend> {
  // The owner of the tables also grants the other roles their rights, which might be new.
  if (options.migratorUrl === undefined)
    try {
      return await PostgresBackend.open(options);
    } catch (error) {
      if (codeOf(error) !== "database_behind") throw error;
    }
  await updateTables(options);
  return PostgresBackend.open(options);
}

/** Creates or updates the tables, and grants the roles their rights. */
export async function updateTables({ url, workerUrl, migratorUrl }: PostgresOptions): Promise<void> {
  const roles = workerUrl === undefined ? {} : { roles: { app: roleIn(url), worker: roleIn(workerUrl) } };
  await migrateDatabase({ url: migratorUrl ?? url, ...roles });
}

async function refuseUnfinished({ engine }: PostgresBackend): Promise<void> {
  const text = "SELECT 1 FROM facts WHERE name = ?";
  const fact = await engine
    .read(() => queryRow(text, unfinishedFact))
    .catch((error: unknown) => {
      // Without the right to read facts, opening the store explains which role is missing.
      if (codeOf((error as Error).cause) !== "42501") throw error;
    });
  if (fact !== undefined) throw unfinishedError();
}

function roleIn(url: string): string {
  const { username, host } = new URL(url);
  if (username !== "") return decodeURIComponent(username);
  throw new SkeinError("invalid_arguments", {
    problem: `The address of the database at ${host} names no role`,
    advice: "Write it as postgres://<role>:<password>@<host>/<database>",
  });
}
