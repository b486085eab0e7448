import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The checkout. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a command of the project and tells how it went; its output only when it failed. */
export function step(name: string, command: string, args: readonly string[]): string {
  const started = performance.now();
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, encoding: "utf8" });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (status === 0) {
    console.log(`ok    ${name} (${seconds} s)`);
    return stdout;
  }
  console.log(`FAIL  ${name} (${seconds} s)\n${stdout}${stderr}${error?.message ?? ""}`);
  process.exit(1);
}
