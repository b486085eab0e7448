import { filledCase } from "./load.ts";
import { longSession } from "./open-compacted.ts";
import type { Row } from "./row.ts";
import { growthSizes } from "./row.ts";

export const row: Row = {
  name: "page",
  title: "The last 20 entries, and 20 anywhere",
  async measure(shop) {
    const long = async (act: "grown" | "compacted") => {
      const { store, sessionId, file } = await longSession(shop, act, "500k");
      return { folder: store, sessionId, file, ids: shop.idsOf(store, sessionId) };
    };
    const common = { size: shop.size(growthSizes["500k"]), act: "page", runs: shop.runs(3) } as const;
    const pages = filledCase(shop, "page", ["sqlite", "mastra", "claude", "cloudflare"]);
    return [
      ...(await shop.measure({
        ...common,
        name: "500k",
        jobs: { full: () => long("grown"), pi: () => long("grown"), piNewer: () => long("grown") },
      })),
      ...(await shop.measure({
        ...common,
        name: "500k, compacted",
        jobs: { full: () => long("compacted") },
      })),
      ...(await shop.measure({ ...pages, runs: shop.runs(3) })),
    ];
  },
};
