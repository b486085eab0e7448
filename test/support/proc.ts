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

/** A zombie is nobody. */
export function isThere(pid: number): boolean {
  return !["", "Z", "X"].includes(stateOf(pid));
}
