import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const sizes = [10_000, 50_000, 100_000, 200_000, 500_000];

export const row: Row = {
  name: "core",
  title: "Read, link and derive the context of a session in memory",
  measure: (shop) =>
    inTurn(sizes, (size) =>
      shop.measure({
        name: `${size / 1000}k`,
        size: shop.size(size),
        act: "core",
        runs: shop.runs(5),
        jobs: { core: (folder) => ({ folder, count: shop.size(size) }) },
      }),
    ),
};
