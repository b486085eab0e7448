import type { Workshop } from "../workshop.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

const sizes = { "1k": 1000, "10k": 10_000 } as const;
const cases = (Object.keys(sizes) as (keyof typeof sizes)[]).flatMap((size) =>
  (["all", "agent", "tree"] as const).map((visibility) => ({ size, visibility })),
);

/** A store with this many sessions, of which a tenth are in one tree. */
function relatedSessions(shop: Workshop, size: keyof typeof sizes): Promise<string> {
  return shop.fixture(`related-${size}`, (folder) =>
    shop.make("related", { folder, count: shop.size(sizes[size]) }),
  );
}

export const row: Row = {
  name: "list-with-messages",
  title: "List 100 sessions with the tool, each with its last five messages",
  measure: (shop) =>
    inTurn(cases, ({ size, visibility }) => {
      const job = async () => ({ folder: await relatedSessions(shop, size), visibility });
      return shop.measure({
        name: `${size}, ${visibility}`,
        size: shop.size(sizes[size]),
        act: "listTool",
        runs: shop.runs(5),
        jobs: visibility === "all" ? { full: job, allRead: job } : { full: job },
      });
    }),
};
