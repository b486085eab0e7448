import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isThere } from "./proc.ts";

export function runningPath(root: string): string {
  return join(root, "gateway.json");
}

interface RunningGateway {
  readonly pid: number;
  readonly url: string;
}

/** Returns the gateway named in `gateway.json`, or `null` if there is no such file or its process has exited. */
export function findRunning(root: string): RunningGateway | null {
  const file = runningPath(root);
  if (!existsSync(file)) return null;
  const running = JSON.parse(readFileSync(file, "utf8")) as RunningGateway;
  return isThere(running.pid) ? running : null;
}
