import { openCase } from "./open-compacted.ts";
import type { GrowthSize, Row } from "./row.ts";
import { growthSizes, inTurn } from "./row.ts";

/** Eight bytes per token in a window of 200,000 tokens. */
const byteBudget = 8 * 200_000;

export const row: Row = {
  name: "open-whole",
  title: "Open a session that was never compacted: context within a byte budget, ready to append",
  measure: (shop) =>
    inTurn(Object.keys(growthSizes) as GrowthSize[], (size) => openCase(shop, "grown", size, byteBudget)),
};
