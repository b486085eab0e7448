import { commandFile } from "../build.ts";
import type { ListSize } from "./list.ts";
import { listSizes, manySessions } from "./list.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

export const row: Row = {
  name: "command",
  title: "Time of `skein sessions ls` in a new process",
  measure: (shop) =>
    inTurn(["1k", "100k"] satisfies ListSize[], (size) =>
      shop.measure({
        name: size,
        size: shop.size(listSizes[size]),
        act: "command",
        runs: shop.runs(15),
        jobs: { command: async () => ({ folder: await manySessions(shop, size), file: commandFile }) },
      }),
    ),
};
