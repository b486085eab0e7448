import { manySessions } from "./list.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const cases = [
  { name: "each its own session", kind: "own", rate: 1000 },
  { name: "all the same one", kind: "same", rate: 20 },
];

export const row: Row = {
  name: "subscribers",
  title: "Events to 1,000 subscribers: 1,000 per second to one each, 20 per second to all",
  measure: (shop) =>
    inTurn(cases, ({ name, kind, rate }) => {
      const count = shop.size(1000);
      const gateway = async () => ({ folder: await manySessions(shop, "1k"), count, kind, rate });
      return shop.measure({ name, size: count, act: "hear", runs: shop.runs(3), jobs: { gateway } });
    }),
};
