import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };

/**
 * Returns the folder with the built console for `gateway.console`, or `null` if it is off. The folder does not have to
 * exist, because a build can create it while the gateway is running.
 */
export function findConsoleFolder(setting: string | boolean): string | null {
  if (typeof setting === "string") return setting;
  if (!setting) return null;
  const root = findPackageFolder(import.meta.dirname);
  return root === null ? null : join(root, "dist", "console");
}

/** Finds this package's folder, from source or from its own bundle. Returns `null` inside another package's bundle. */
function findPackageFolder(from: string): string | null {
  const file = join(from, "package.json");
  const parent = dirname(from);
  if (existsSync(file)) {
    const { name } = JSON.parse(readFileSync(file, "utf8")) as { readonly name?: unknown };
    return name === manifest.name ? from : null;
  }
  return parent === from ? null : findPackageFolder(parent);
}
