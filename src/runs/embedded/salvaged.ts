import type { Ledger } from "../contract.ts";
import type { QueueTables } from "./queue.ts";
import { refreshQueue } from "./queue.ts";

/**
 * Makes the tables of runs fit together again after some of their rows were lost: a run without its input cannot be answered,
 * and the order of runs is computed again.
 */
export function settleSalvagedRuns(
  tables: QueueTables & { has(table: string): boolean; all(text: string): Record<string, unknown>[] },
): { readonly table: string; readonly rows: number }[] {
  if (!tables.has("runs")) return [];
  const lost = tables.run("DELETE FROM runs WHERE seq NOT IN (SELECT seq FROM run_inputs)");
  tables.run("DELETE FROM run_inputs WHERE seq NOT IN (SELECT seq FROM runs)");
  tables.run("DELETE FROM ready");
  tables.run("DELETE FROM ready_users");
  for (const { uid } of tables.all("SELECT DISTINCT uid FROM runs WHERE state = 'queued'"))
    refreshQueue(tables, String(uid));
  return [{ table: "runs", rows: Number(lost) }];
}

/** What would be lost with the tables of runs: input that is in no log yet, and turns that are not over. */
export function countOpenRuns(ledger: Ledger): { queuedInputs: number; unfinishedRuns: number } {
  const sql =
    "SELECT count(*) AS count, coalesce(sum(written), 0) AS written FROM runs WHERE ended_at IS NULL";
  const { count, written } = ledger.sql(sql).get() ?? {};
  return { queuedInputs: Number(count) - Number(written), unfinishedRuns: Number(written) };
}
