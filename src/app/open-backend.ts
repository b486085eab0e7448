import type { Config } from "../config/sections/all.ts";
import { codeOf, SkeinError } from "../core/errors.ts";
import type { Backend } from "../store/work.ts";

/**
 * Connects to the database that the configuration names, and creates or updates its tables if they are behind. Returns
 * `null` if sessions are stored in a folder.
 */
export async function openBackend({
  store,
  postgres,
}: Pick<Config, "store" | "postgres">): Promise<Backend | null> {
  if (store.kind !== "postgres") return null;
  const { PostgresBackend } = await import("../store/postgres/store.ts");
  const { url } = store;
  const { workerUrl, migratorUrl, maxConnections } = postgres;
  const options = { url, maxConnections, ...(workerUrl !== null && { workerUrl }) };
  // The owner of the tables also grants the other roles their rights, which might be new.
  if (migratorUrl === null)
    try {
      return await PostgresBackend.open(options);
    } catch (error) {
      if (codeOf(error) !== "database_behind") throw error;
    }
  const { migrateDatabase } = await import("../store/postgres/migrate.ts");
  const roles = workerUrl === null ? {} : { roles: { app: roleIn(url), worker: roleIn(workerUrl) } };
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
