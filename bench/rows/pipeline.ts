import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const sizes = { "10k": 10_000, "30k": 30_000, "100k": 100_000 } as const;
/** Above this size, copying before each step takes minutes. */
const mostNaive = 10_000;
const cases = (["clean", "damaged"] as const).flatMap((kind) =>
  Object.entries(sizes).map(([name, size]) => ({ kind, name: `${name} ${kind}`, size })),
);

export const row: Row = {
  name: "pipeline",
  title: "Prepare a transcript for its provider",
  measure: (shop) =>
    inTurn(cases, ({ kind, name, size }) => {
      const count = shop.size(size);
      const job = (folder: string) => ({ folder, kind, count });
      const jobs = size > mostNaive ? { pipeline: job } : { pipeline: job, naive: job };
      return shop.measure({ name, size: count, act: "prepare", runs: shop.runs(3), jobs });
    }),
};
