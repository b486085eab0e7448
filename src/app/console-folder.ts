import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import manifest from "../../package.json" with { type: "json" };

/**
 * The folder of the built console for `gateway.console`; `null` for none. The folder need not exist: a build may create it while
 * the gateway runs.
 */
export function findConsoleFolder(setting: string | boolean): string | null {
  if (typeof setting === "string") return setting;
  if (!setting) return null;
  const root = findPackageFolder(import.meta.dirname);
  return root === null ? null : join(root, "dist", "console");
}

/** The folder of this package, from the source as from a bundle; `null` inside a bundle of another package. */
function findPackageFolder(from: string): string | null {
  const file = join(from, "package.json");
  const parent = dirname(from);
  if (existsSync(file)) {
    const { name } = JSON.parse(readFileSync(file, "utf8")) as { readonly name?: unknown };
    return name === manifest.name ? from : null;
  }
  return parent === from ? null : findPackageFolder(parent);
}
