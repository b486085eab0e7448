import type { Row } from "./row.ts";

const turns = 400;

export const row: Row = {
  name: "turn",
  title: "A turn with two tool calls, no thinking time",
  measure: (shop) => {
    const count = shop.size(turns);
    const job = (folder: string) => ({ folder, count, turns: 10 });
    const jobs = {
      memory: (folder: string) => ({ ...job(folder), kind: "memory" }),
      os: job,
      full: job,
      bare: job,
    };
    return shop.measure({ name: "two calls", size: count, act: "turn", runs: shop.runs(5), jobs });
  },
};
