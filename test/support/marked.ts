import { readdirSync, readFileSync } from "node:fs";

/** Processes as the tests of child processes see them; `marked` for Linux alone. */

/** A zombie is nobody. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  return process.platform !== "linux" || !/^State:\s+Z|^$/m.test(readProc(pid, "status"));
}

/** Whoever carries a mark, and the wardens that answer for it. */
export function marked(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => readProc(pid, "environ").includes(mark) || isWardenOf(pid, mark));
}

export function isWardenOf(pid: number, mark: string): boolean {
  return readProc(pid, "cmdline").includes(mark);
}

/** Blank: it is gone. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}
