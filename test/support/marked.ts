import { isThere, processIds, procText } from "./proc.ts";

/** Processes as the tests of child processes see them; `marked` is for Linux only. */

/** A zombie does not count. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  return process.platform !== "linux" || isThere(pid);
}

/** The processes with a mark, and their wardens. */
export function marked(mark: string): number[] {
  return processIds().filter((pid) => procText(pid, "environ").includes(mark) || isWardenOf(pid, mark));
}

export function isWardenOf(pid: number, mark: string): boolean {
  return procText(pid, "cmdline").includes(mark);
}
