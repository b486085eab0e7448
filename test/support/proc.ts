import { readdirSync, readFileSync } from "node:fs";

/** What Linux tells of processes, any of which may end while it is asked. */

export function processIds(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Blank: it has ended meanwhile, or is somebody else's. */
export function procText(pid: number, file: "cmdline" | "environ" | "stat" | "status"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

/** R, S, T …; blank: it is gone. */
export function stateOf(pid: number): string {
  return /\) (\w) /.exec(procText(pid, "stat"))?.[1] ?? "";
}

/** Who has gone meanwhile needs none. */
export function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** That very process, known by its environment: the number of one that has ended is given to another. */
export function isStillThere(pid: number, mark: string): boolean {
  return isThere(pid) && (procText(pid, "environ").includes(mark) || isOnItsWay(pid));
}

/** It is ending: its environment is gone already, and it is not yet. */
function isOnItsWay(pid: number): boolean {
  const flags = procText(pid, "stat").split(") ").at(-1)?.split(" ")[6];
  return (Number(flags) & exiting) !== 0;
}

/** PF_EXITING of the kernel. */
const exiting = 0x4;

/** A zombie is nobody. */
export function isThere(pid: number): boolean {
  return !["", "Z", "X"].includes(stateOf(pid));
}
