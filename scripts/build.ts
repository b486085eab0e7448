// npm run build: bundles the package and the console into dist, then checks the packed package.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildConsole, checkConsoleSize } from "./build-console.ts";
import { bundlePackage } from "./bundle.ts";
import { root, runStep } from "./steps.ts";

await bundlePackage(join(root, "dist"));
await buildConsole();
checkConsoleSize();

const packed = mkdtempSync(join(tmpdir(), "skein-pack-"));
try {
  // Without scripts, because prepack would run this file again.
  const listing = await runStep("pack", "npm", [
    "pack",
    "--ignore-scripts",
    "--json",
    "--pack-destination",
    packed,
  ]);
  const [{ filename, files }] = JSON.parse(listing) as [{ filename: string; files: { path: string }[] }];
  if (!files.some(({ path }) => path === "dist/console/index.html"))
    throw new Error("The package does not contain the console. Check “files” in package.json.");
  await runStep("publint", "publint", ["run", "--strict", join(packed, filename)]);
  await runStep("types resolve", "attw", [join(packed, filename), "--profile", "esm-only", "--no-emoji"]);
} finally {
  rmSync(packed, { recursive: true, force: true });
}
