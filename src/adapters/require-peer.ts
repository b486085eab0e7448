import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SkeinError } from "../core/errors.ts";
import { thrownText } from "../core/text.ts";

/**
 * Imports a framework that is an optional peer dependency. `range` is the lowest supported version and the first one
 * that is not supported, for example `>=1.1.4 <2`. Throws `unavailable` with the command that installs the package if
 * it is missing or its version is outside the range.
 */
export async function importPeer<T>(adapter: string, packageName: string, range: string): Promise<T> {
  const advice = `Run: npm install "${packageName}@${range}"`;
  const [, from = "", before = ""] = /^>=(\S+) <(\S+)$/.exec(range) ?? [];
  let version: string;
  try {
    version = versionOf(packageName);
  } catch (error) {
    const problem = `skein/${adapter} needs the package ${packageName} (${thrownText(error)})`;
    throw new SkeinError("unavailable", { problem, advice }, { cause: error });
  }
  if (compareVersions(version, from) < 0 || compareVersions(version, before) >= 0) {
    const problem = `skein/${adapter} needs ${packageName} ${range}, but version ${version} is installed`;
    throw new SkeinError("unavailable", { problem, advice });
  }
  return (await import(packageName)) as T;
}

/** Not every package exports its `package.json`, so it is looked up next to the file that would be imported. */
function versionOf(packageName: string): string {
  let folder = dirname(fileURLToPath(import.meta.resolve(packageName)));
  for (;;) {
    const file = join(folder, "package.json");
    if (existsSync(file)) {
      const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: string; version?: string };
      if (name === packageName && version !== undefined) return version;
    }
    const parent = dirname(folder);
    if (parent === folder) throw new Error("its package.json cannot be found");
    folder = parent;
  }
}

/** Compares the numbers of two versions. A missing number counts as 0, and a suffix such as `-beta.1` is ignored. */
function compareVersions(a: string, b: string): number {
  const numbers = (version: string) => version.replace(/-.*$/, "").split(".").map(Number);
  const [left, right] = [numbers(a), numbers(b)];
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
