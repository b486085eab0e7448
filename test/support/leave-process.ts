import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";

/**
 * A separate process that ignores SIGTERM and does not exit on its own. A stray process has left its parent's group.
 */
export function leaveProcess(isStray: boolean): ChildProcess {
  const script = "trap '' TERM; while :; do sleep 100; done";
  return spawn("/bin/sh", ["-c", script], { stdio: "ignore", detached: isStray });
}
