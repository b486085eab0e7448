import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";

/** A process of its own that does not go by itself, nor by SIGTERM; a stray one has left the group of who started it. */
export function leaveProcess(isStray: boolean): ChildProcess {
  const script = "trap '' TERM; while :; do sleep 100; done";
  return spawn("/bin/sh", ["-c", script], { stdio: "ignore", detached: isStray });
}
