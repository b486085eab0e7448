import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Set by `build-programs.ts` and inherited by the processes that tests start. */
const folder = process.env.SKEIN_TEST_PROGRAMS ?? "";
if (folder === "")
  throw new Error("SKEIN_TEST_PROGRAMS is not set. Run the tests with vitest, which builds the programs.");

/** `bin/skein.mjs` in the published package's layout. */
export const skeinProgram = join(folder, "bin/skein.mjs");

/** The same file in the checkout, which runs the source. */
export const skeinInCheckout = fileURLToPath(new URL("../../bin/skein.mjs", import.meta.url));

/** Returns a program in `test/support` by its file name without `.ts`. */
export function supportProgram(name: string): string {
  return join(folder, "support", `${name}.js`);
}
