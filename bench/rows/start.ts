import type { ListSize } from "./list.ts";
import { listSizes, manySessions } from "./list.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

export const row: Row = {
  name: "start",
  title: "Start: open the store and list the first 100 sessions",
  measure: (shop) =>
    inTurn(Object.keys(listSizes) as ListSize[], (size) =>
      shop.measure({
        name: size,
        size: shop.size(listSizes[size]),
        act: "start",
        runs: shop.runs(5),
        jobs: { full: async () => ({ folder: await manySessions(shop, size) }) },
      }),
    ),
};
