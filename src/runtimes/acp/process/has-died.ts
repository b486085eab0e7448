import { readFileSync } from "node:fs";

/** Whether a child of ours has ended, also where its end was not read yet. Where that cannot be seen: not. */
export function hasDied(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch (error) {
    // No such process; or none that /proc tells of, as on other systems than Linux.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
