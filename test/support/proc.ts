import { readdirSync, readFileSync } from "node:fs";

/** Process information from Linux. Any process can exit while it is being read. */

export function processIds(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Empty if the process has exited or belongs to another user. */
export function procText(pid: number, file: "cmdline" | "environ" | "stat" | "status"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}

/** Returns R, S, T and so on, or an empty string if the process no longer exists. */
export function stateOf(pid: number): string {
  return /\) (\w) /.exec(procText(pid, "stat"))?.[1] ?? "";
}

/** Sends a signal. Does nothing if the process has already exited. */
export function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Whether this exact process still exists. It is identified by its environment, because the PID of an exited process
 * can be reused.
 */
export function isStillThere(pid: number, mark: string): boolean {
  return isThere(pid) && (procText(pid, "environ").includes(mark) || isOnItsWay(pid));
}

/** Whether the process is exiting. Its environment no longer exists, but the process does. */
function isOnItsWay(pid: number): boolean {
  const flags = procText(pid, "stat").split(") ").at(-1)?.split(" ")[6];
  return (Number(flags) & exiting) !== 0;
}

/** The kernel's PF_EXITING flag. */
const exiting = 0x4;

/** Whether the process exists. A zombie does not. */
export function isThere(pid: number): boolean {
  return !["", "Z", "X"].includes(stateOf(pid));
}
