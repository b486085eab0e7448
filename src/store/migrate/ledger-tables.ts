import { SkeinError } from "../../core/errors.ts";
import { changeRows } from "../../core/script.ts";
import type { LedgerTable } from "./contract.ts";

const userOfRun = (column: string) => `SELECT user FROM runs WHERE runs.run_id = ${column}`;
const userOfSession = "SELECT user FROM sessions WHERE sessions.uid = own.uid";
const userOfRoot = "SELECT user FROM runs WHERE runs.root = own.root LIMIT 1";

/**
 * The tables that are in `work.db` and in PostgreSQL, with the same columns. `runs` comes first, because the users of
 * other rows are looked up there. In `tenant`, `own` is the table itself.
 */
export const ledgerTables: readonly LedgerTable[] = [
  { name: "runs", key: ["seq"], isNumbered: true },
  { name: "run_inputs", key: ["seq"], tenant: "SELECT user FROM runs WHERE runs.seq = own.seq" },
  { name: "run_partials", key: ["run_id"], tenant: userOfRun("own.run_id") },
  { name: "run_waits", key: ["from_run", "to_run"], tenant: userOfRun("own.from_run") },
  { name: "run_replies", key: ["run_id"], tenant: userOfRun("own.run_id") },
  { name: "ready", key: ["uid", "app", "tools"] },
  { name: "ready_users", key: ["app", "slot", "user"] },
  { name: "turns", key: ["uid", "slot"], tenant: userOfSession },
  { name: "loop_turns", key: ["uid"], tenant: userOfSession },
  { name: "session_apps", key: ["user", "key"] },
  { name: "budgets", key: ["root"], tenant: userOfRoot },
  { name: "budget_pairs", key: ["root", "a", "b"], tenant: userOfRoot },
  { name: "approvals", key: ["approval_id"] },
  { name: "outbox", key: ["seq"], isNumbered: true },
  { name: "children", key: ["run_id"] },
  { name: "threads", key: ["user", "channel", "account", "thread"] },
  { name: "schedules", key: ["user", "name"] },
  { name: "gateway_tokens", key: ["seq"], isNumbered: true },
  { name: "gateway_codes", key: ["seq"], isNumbered: true },
];

/**
 * The fact that stores the reserved event numbers. It is copied so that a client's cursor never refers to other events.
 */
const eventNumbers = "gateway.events.reserved";

/** The prefix of facts that record permanently deleted sessions and users. PostgreSQL has no table for them. */
export const tombstonePrefix = "tombstone.";

/** The prefix of facts that store the state of channels, such as subscribed threads and handled events. */
const channelPrefix = "channel.";

/** Text of a statement that deletes the state of channels. An earlier attempt might have copied rows that are gone. */
export const deleteChannelFacts = "DELETE FROM facts WHERE name >= 'channel.' AND name < 'channel/'";

export function isSharedFact(name: string): boolean {
  return name === eventNumbers || name.startsWith(tombstonePrefix) || name.startsWith(channelPrefix);
}

/** A fact is a value that applies to the whole store. */
export function putFact(name: string, value: string) {
  return changeRows(
    "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    name,
    value,
  );
}

/** The fact that names the object store with a database's blobs. */
export const objectStoreFact = "blobs.store";

/** The fact that marks a store whose migration has not finished. Its value identifies the source. */
export const unfinishedFact = "migration.from";

/** The fact that identifies the store from which a database was filled. */
export const finishedFact = "migration.done";

/** A store that `skein store migrate` has not filled completely must not be used. */
export function unfinishedError(): SkeinError {
  return new SkeinError("unavailable", {
    problem: "The migration to this store has not finished",
    advice: "Run the same `skein store migrate` command again to continue it",
  });
}

/** Text of a query for one page of a table. `?` stands for each column of the key, then for the limit. */
export function pageQuery(
  { name, key, tenant }: LedgerTable,
  columns: readonly string[],
  isFirst: boolean,
  withTenant: boolean,
): string {
  const user = withTenant && tenant !== undefined ? `, coalesce((${tenant}), '') AS tenant` : "";
  const from = isFirst ? "" : ` WHERE (${key.join(", ")}) > (${key.map(() => "?").join(", ")})`;
  return `SELECT ${columns.join(", ")}${user} FROM ${name} AS own${from} ORDER BY ${key.join(", ")} LIMIT ?`;
}

/** Text of a query for the last row of a table. */
export function lastRowQuery({ name, key }: LedgerTable, columns: readonly string[]): string {
  const order = key.map((column) => `${column} DESC`).join(", ");
  return `SELECT ${columns.join(", ")} FROM ${name} ORDER BY ${order} LIMIT 1`;
}

/** Text of a query for the runs that have not ended, by state. */
export const openRunsQuery =
  "SELECT state, count(*) AS count FROM runs WHERE ended_at IS NULL GROUP BY state ORDER BY state";
