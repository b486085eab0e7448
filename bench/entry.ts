import type { Acts } from "./side.ts";
import { timed } from "./side.ts";

/** The cost of importing the package's entry point for the first time, compiled as it ships. */
export const acts: Acts = {
  import: async () => ({ ms: await timed(() => import("../src/index.ts")) }),
};
