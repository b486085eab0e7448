import type { Job } from "../side.ts";
import type { Side, SideName } from "../sides.ts";
import { sides } from "../sides.ts";
import type { Case, Workshop } from "../workshop.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const messages = 20_000;

function casesOf(shop: Workshop): Case[] {
  const size = shop.size(messages);
  const jobs = (names: readonly SideName[], more: Partial<Job>) =>
    Object.fromEntries(
      names.map((name) => {
        const { most = Number.POSITIVE_INFINITY }: Side = sides[name];
        const count = Math.min(size, shop.size(most));
        return [name, (folder: string) => ({ folder, count, ...more })];
      }),
    );
  const common = { size, act: "append", runs: shop.runs(5) } as const;
  const alone: SideName[] = ["full", "os", "pi", "piNewer", "jsonl", "jsonlOs", "sqlite"];
  const peers: SideName[] = ["mastra", "langgraph", "adk", "cloudflare"];
  return [
    { ...common, name: "one at a time", jobs: jobs([...alone, ...peers], {}) },
    {
      ...common,
      name: "batches of 100",
      jobs: jobs(["full", "os", "jsonl", "jsonlOs", "sqlite", "mastra"], { batch: 100 }),
    },
    { ...common, name: "64 sessions at once", jobs: jobs(["full", "os"], { sessions: 64 }) },
  ];
}

export const row: Row = {
  name: "append",
  title: "Append messages of 1,000 characters",
  measure: (shop) => inTurn(casesOf(shop), (each) => shop.measure(each)),
};
