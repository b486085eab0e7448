// Installs the frameworks, and the package as it is published next to them, so that each adapter finds its framework in
// the same way as in a user's project.
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { bundleCode } from "../../scripts/bundle.ts";
import { frameworks, installFrameworks } from "../../scripts/install-frameworks.mjs";
import { root } from "../../scripts/steps.ts";

export default async function prepareFrameworks(): Promise<void> {
  installFrameworks();
  const skein = join(frameworks, "node_modules/skein");
  mkdirSync(skein, { recursive: true });
  copyFileSync(join(root, "package.json"), join(skein, "package.json"));
  await bundleCode(join(skein, "dist"));
}
