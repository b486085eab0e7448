import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Compiles the sources and the benchmark like the package, so that the code being measured is what users run. */
export function compile(): void {
  rmSync(fileURLToPath(new URL(".build", import.meta.url)), { recursive: true, force: true });
  const project = fileURLToPath(new URL("tsconfig.json", import.meta.url));
  const { status, stdout, error } = spawnSync("tsc", ["--project", project], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the benchmark does not compile:\n${stdout}${error?.message ?? ""}`);
}
