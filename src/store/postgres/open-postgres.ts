import { codeOf, SkeinError } from "../../core/errors.ts";
import type { Backend } from "../contract.ts";
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
  const { url, workerUrl, migratorUrl } = options;
  // The owner of the tables also grants the other roles their rights, which might be new.
  if (migratorUrl === undefined)
    try {
      return await PostgresBackend.open(options);
    } catch (error) {
      if (codeOf(error) !== "database_behind") throw error;
    }
  const roles = workerUrl === undefined ? {} : { roles: { app: roleIn(url), worker: roleIn(workerUrl) } };
  await migrateDatabase({ url: migratorUrl ?? url, ...roles });
  return PostgresBackend.open(options);
}

function roleIn(url: string): string {
  const { username, host } = new URL(url);
  if (username !== "") return decodeURIComponent(username);
  throw new SkeinError("invalid_arguments", {
    problem: `The address of the database at ${host} names no role`,
    advice: "Write it as postgres://<role>:<password>@<host>/<database>",
  });
}
