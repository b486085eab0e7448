import { commandFile } from "../build.ts";
import type { ListSize } from "./list.ts";
import { listSizes, manySessions } from "./list.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

export const row: Row = {
  name: "gateway-start",
  title: "Time until `skein start` is ready",
  measure: (shop) =>
    inTurn(["1k", "100k"] satisfies ListSize[], (size) =>
      shop.measure({
        name: size,
        size: shop.size(listSizes[size]),
        act: "ready",
        runs: shop.runs(7),
        jobs: { gateway: async () => ({ folder: await manySessions(shop, size), file: commandFile }) },
      }),
    ),
};
