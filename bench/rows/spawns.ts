import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const cases = [
  { name: "100", size: 100, lanes: 64 },
  { name: "1k", size: 1000, lanes: 64 },
  { name: "1k, lanes by default", size: 1000 },
];

export const row: Row = {
  name: "spawns",
  title: "Sub-agents spawned, run and announced, twenty per parent",
  measure: (shop) =>
    inTurn(cases, ({ name, size, ...lanes }) => {
      const count = shop.size(size);
      const job = (folder: string) => ({ folder, count, ...lanes });
      return shop.measure({
        name,
        size: count,
        act: "spawn",
        runs: shop.runs(3),
        jobs: { full: job, os: job },
      });
    }),
};
