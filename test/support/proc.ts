import { readdirSync, readFileSync } from "node:fs";

/** Process information from Linux; any process may exit while it is read. */

export function processIds(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Blank: it has exited meanwhile, or belongs to another user. */
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

/** A process that has exited meanwhile needs none. */
export function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Exactly that process, identified by its environment: the pid of an exited process is reused. */
export function isStillThere(pid: number, mark: string): boolean {
  return isThere(pid) && (procText(pid, "environ").includes(mark) || isOnItsWay(pid));
}

/** It is exiting: its environment is already gone, the process is not. */
function isOnItsWay(pid: number): boolean {
  const flags = procText(pid, "stat").split(") ").at(-1)?.split(" ")[6];
  return (Number(flags) & exiting) !== 0;
}

/** PF_EXITING of the kernel. */
const exiting = 0x4;

/** A zombie does not count. */
export function isThere(pid: number): boolean {
  return !["", "Z", "X"].includes(stateOf(pid));
}
