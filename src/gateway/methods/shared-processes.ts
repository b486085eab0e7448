import type { LiveProcess } from "../../core/events.ts";
import type { LaneListPayload } from "../../protocol/run-details.ts";
import type { RunRowPayload } from "../../protocol/runs.ts";
import type { Run } from "../../runs/contract.ts";
import { machineName, parseIdentity } from "../../store/files/process-identity.ts";
import type { MethodApp } from "./dispatch.ts";

/** The processes that share a database. They are shown only if there are several. */

/** Returns the processes with the number of runs that each of them executes, or `null` if there is only one. */
export async function listProcesses({
  store,
  runs,
}: Pick<MethodApp, "store" | "runs">): Promise<LaneListPayload["processes"] | null> {
  const processes = severalProcesses(store);
  if (processes.length === 0) return null;
  const counts = [...(await runs.countByOwner())].map(([owner, count]) => ({
    count,
    process: parseIdentity(owner),
  }));
  return processes.map(({ host, pid, ...rest }) => {
    // Each Skein instance in a process has its own owner name.
    const own = counts.filter(({ process }) => process?.pid === pid && process.host === host);
    const executed = own.reduce((sum, { count }) => sum + count, 0);
    return { ...rest, host: machineName(host), pid, runs: executed };
  });
}

/** Returns the process that executes a run, or `null` if no process executes it or if there is only one process. */
export function workerOf(
  { store }: Pick<MethodApp, "store">,
  { owner }: Run,
): RunRowPayload["worker"] | null {
  if (owner === null || severalProcesses(store).length === 0) return null;
  const process = parseIdentity(owner);
  return process === null ? null : { host: machineName(process.host), pid: process.pid };
}

function severalProcesses({ work }: MethodApp["store"]): readonly LiveProcess[] {
  const processes = work.shared?.events.processes() ?? [];
  return processes.length > 1 ? processes : [];
}
