import { join } from "node:path";
import type { Job } from "../side.ts";
import type { Workshop } from "../workshop.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

export const listSizes = { "1k": 1000, "10k": 10_000, "100k": 100_000 } as const;
export type ListSize = keyof typeof listSizes;

/** A store with this many sessions. */
export function manySessions(shop: Workshop, size: ListSize): Promise<string> {
  return shop.fixture(`sessions-${size}`, (folder) =>
    shop.make("listed", { folder, count: shop.size(listSizes[size]) }),
  );
}

async function forPi(shop: Workshop, size: ListSize): Promise<Job> {
  const file = join(await manySessions(shop, size), "agents");
  const folder = await shop.fixture(`pi-${size}`, (folder) => shop.make("linkedForPi", { folder, file }));
  return { folder };
}

async function forClaude(shop: Workshop, size: ListSize): Promise<Job> {
  const count = shop.size(listSizes[size]);
  return {
    folder: await shop.fixture(`claude-${size}`, (folder) =>
      shop.make("writtenForClaude", { folder, count }),
    ),
  };
}

export const row: Row = {
  name: "list",
  title: "List the first 100 of many sessions",
  measure: (shop) =>
    inTurn(Object.keys(listSizes) as ListSize[], async (size) => {
      const ours = (filter: Job["filter"]) => async () => ({
        folder: await manySessions(shop, size),
        ...(filter === undefined ? {} : { filter }),
      });
      const common = { size: shop.size(listSizes[size]), act: "list", runs: shop.runs(5) } as const;
      const others = {
        pi: () => forPi(shop, size),
        piNewer: () => forPi(shop, size),
        claude: () => forClaude(shop, size),
      };
      return [
        ...(await shop.measure({ ...common, name: size, jobs: { full: ours("filtered"), ...others } })),
        ...(await shop.measure({ ...common, name: `${size}, no filter`, jobs: { full: ours("none") } })),
        ...(await shop.measure({ ...common, name: `${size}, by text`, jobs: { full: ours("text") } })),
      ];
    }),
};
