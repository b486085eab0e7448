import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export function runningPath(root: string): string {
  return join(root, "gateway.json");
}

/** The gateway that `gateway.json` names. */
export function findRunning(root: string): { readonly pid: number; readonly url: string } | null {
  const file = runningPath(root);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
}
