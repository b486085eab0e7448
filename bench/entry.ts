import type { Acts } from "./side.ts";
import { timed } from "./side.ts";

/** The cost of a user's first import of the package's entry point, compiled as it ships. */
export const acts: Acts = {
  import: async () => ({ ms: await timed(() => import("../src/index.ts")) }),
};
