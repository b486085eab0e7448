import { existsSync, readFileSync } from "node:fs";

/** Whether a process has ended, also where its end was not read yet. Where that cannot be seen: not. */
export function hasDied(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // No such process; or it went between the two; or this is a system without /proc.
    return code === "ESRCH" || (code === "ENOENT" && existsSync("/proc/self/stat"));
  }
}
