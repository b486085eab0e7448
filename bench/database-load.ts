import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

/** What a PostgreSQL server has done so far, by its own counters and those of the kernel. */
export interface DatabaseLoad {
  readonly transactions: number;
  readonly insertedRows: number;
  readonly entries: number;
  readonly batches: number;
  readonly walBytes: number;
  readonly bytes: number;
  /** CPU time of the server and all its processes, in milliseconds. 0 if the system has no `/proc`. */
  readonly cpuMs: number;
}

const figures = `SELECT pg_backend_pid() AS pid,
  (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8 AS transactions,
  (SELECT sum(n_tup_ins) FROM pg_stat_user_tables)::float8 AS rows,
  (SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE relname LIKE 'entries\\_%')::float8 AS entries,
  (SELECT sum(n_tup_ins) FROM pg_stat_user_tables WHERE relname = 'feed')::float8 AS batches,
  pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal,
  pg_database_size(current_database())::float8 AS bytes`;

interface Row {
  readonly pid: number;
  readonly transactions: number;
  readonly rows: number | null;
  readonly entries: number | null;
  readonly batches: number | null;
  readonly wal: number;
  readonly bytes: number;
}

/** Runs the work and returns what it added. */
export async function watchDatabase(url: string, work: () => Promise<void>): Promise<DatabaseLoad> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const before = await readLoad(client);
    await work();
    // Each process reports its counters at most once per second.
    await new Promise((resolve) => setTimeout(resolve, 2500));
    const after = await readLoad(client);
    const added = Object.entries(after).map(([name, value]) => [
      name,
      value - before[name as keyof DatabaseLoad],
    ]);
    return Object.fromEntries(added) as DatabaseLoad;
  } finally {
    await client.end();
  }
}

async function readLoad(client: pg.Client): Promise<DatabaseLoad> {
  const [row] = (await client.query<Row>(figures)).rows;
  if (row === undefined) throw new Error("no counters");
  return {
    transactions: row.transactions,
    insertedRows: row.rows ?? 0,
    entries: row.entries ?? 0,
    batches: row.batches ?? 0,
    walBytes: row.wal,
    bytes: row.bytes,
    cpuMs: cpuOfServer(row.pid),
  };
}

const msPerTick = 10;

/** Adds up the CPU time of a process's parent and of the parent's children, including those that have ended. */
function cpuOfServer(pid: number): number {
  const server = statOf(pid)?.parent;
  if (server === undefined) return 0;
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ id: Number(name), stat: statOf(Number(name)) }));
  const ownTicks = all.reduce(
    (sum, { id, stat }) => (stat?.parent === server || id === server ? sum + (stat?.ownTicks ?? 0) : sum),
    0,
  );
  return (ownTicks + (statOf(server)?.endedTicks ?? 0)) * msPerTick;
}

function statOf(pid: number): { parent: number; ownTicks: number; endedTicks: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [parent = 0, user = 0, system = 0, endedUser = 0, endedSystem = 0] = [1, 11, 12, 13, 14].map(
      (at) => fields[at],
    );
    return { parent, ownTicks: user + system, endedTicks: endedUser + endedSystem };
  } catch {
    return null;
  }
}
