import { spawnSync } from "node:child_process";
import { cpSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleCode } from "../scripts/bundle.ts";
import { root } from "../scripts/steps.ts";

const built = fileURLToPath(new URL(".build", import.meta.url));
const packageFolder = join(built, "package");
/** The `skein` command of the package. */
export const commandFile = join(packageFolder, "bin/skein.mjs");

/** Compiles the sources and the benchmark like the package, so that the code being measured is what users run. */
export function compile(): void {
  rmSync(built, { recursive: true, force: true });
  const project = fileURLToPath(new URL("tsconfig.json", import.meta.url));
  const { status, stdout, error } = spawnSync("tsc", ["--project", project], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the benchmark does not compile:\n${stdout}${error?.message ?? ""}`);
}

/** Bundles the package next to the compiled sources. The command is measured from there, because its start is bundled. */
export async function buildPackage(): Promise<void> {
  await bundleCode(join(packageFolder, "dist"));
  for (const name of ["bin", "package.json"])
    cpSync(join(root, name), join(packageFolder, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(packageFolder, "node_modules"));
}
