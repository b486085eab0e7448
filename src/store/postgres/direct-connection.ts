import type pg from "pg";
import { SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";

export const connectionSettings = {
  connectionTimeoutMillis: 10_000,
  // Detects a server that has stopped responding. The timeout is long because a statement may also have to wait for another
  // transaction's locks.
  query_timeout: 30_000,
  // Detects a connection that was silently dropped.
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000,
  application_name: "skein",
};

/** A connection that is not part of a pool. The types of the package lack these members. */
export interface DirectConnection extends pg.Client {
  ref(): void;
  unref(): void;
  /** The ID of the server process, as reported when the connection was opened. */
  readonly processID: number;
}

/** Opens a connection that does not keep the process alive. The caller closes it. */
export async function openDirectConnection(url: string): Promise<DirectConnection> {
  const { Client } = await loadPg();
  const client = new Client({ connectionString: url, ...connectionSettings }) as DirectConnection;
  client.on("error", () => undefined);
  await client.connect();
  client.unref();
  return client;
}

/**
 * Whether a pooler such as PgBouncer answers instead of the server. In transaction mode, a pooler can run each
 * transaction on another connection to the server. A pooler reports a made-up process ID to the client.
 */
export async function isPooled(client: DirectConnection): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return rows[0]?.pid !== client.processID;
}

export async function loadPg(): Promise<Pick<typeof pg, "Client" | "Pool" | "types">> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    const problem = `The pg package cannot be loaded (${thrownText(error)})`;
    throw new SkeinError("unavailable", { problem, advice: "Run: npm install pg" }, { cause: error });
  }
}
