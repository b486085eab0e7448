import { rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPinned } from "./install-pinned.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const pinned = join(root, "test/frameworks");

/** The folder that contains the frameworks. Node finds the checkout's own packages from there too. */
export const frameworks = join(root, "node_modules/.cache/skein-frameworks");

/** Installs the frameworks once, without optional packages, which contain the SDKs' own programs (260 MB). */
export function installFrameworks() {
  installPinned({ name: "adapters", size: "70 MB", pinned, folder: frameworks, isWithoutOptional: true });
  // The tests and the compiler find the frameworks as they find any other package.
  rmSync(join(pinned, "node_modules"), { recursive: true, force: true });
  symlinkSync(join(frameworks, "node_modules"), join(pinned, "node_modules"), "junction");
}
