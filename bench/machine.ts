import { spawnSync } from "node:child_process";
import { cpus, totalmem } from "node:os";

/** Facts about the machine that affect every measurement. */
export function machine(): string {
  const [first] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${first?.model ?? "unknown"} × ${cpus().length}, ${memory} GiB, ${process.platform} ${process.arch}, Node ${process.versions.node}`;
}

export function commit(): string {
  const { stdout } = spawnSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" });
  return stdout?.trim() ?? "";
}
