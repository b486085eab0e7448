import { isThere, processIds, procText } from "./proc.ts";

/** Process lookups for the child process tests. `marked` works only on Linux. */

/** Whether the process is running. A zombie is not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  return process.platform !== "linux" || isThere(pid);
}

/** Returns the processes with a mark and their wardens. */
export function marked(mark: string): number[] {
  return processIds().filter((pid) => procText(pid, "environ").includes(mark) || isWardenOf(pid, mark));
}

export function isWardenOf(pid: number, mark: string): boolean {
  return procText(pid, "cmdline").includes(mark);
}
