import { join } from "node:path";
import { longSessionText } from "../side.ts";
import { filledCase, loadedMessages } from "./load.ts";
import type { Row } from "./row.ts";

export const row: Row = {
  name: "disk",
  title: "Disk for 5,000 messages of 1,000 characters",
  async measure(shop) {
    const sides = ["full", "jsonl", "sqlite", "mastra", "adk", "claude", "cloudflare", "langgraph"] as const;
    const linked = { ...filledCase(shop, "disk", sides), runs: 1 };
    const count = shop.size(loadedMessages);
    const folder = shop.fixture("compacted-disk", (folder) =>
      shop.make("compacted", { folder: join(folder, "store"), sessionId: "cut", count }),
    );
    const cut = async () => ({ folder: join(await folder, "store"), payload: count * longSessionText });
    const jobs = { full: cut };
    return [
      ...(await shop.measure(linked)),
      ...(await shop.measure({ ...linked, name: "after a cut", jobs })),
    ];
  },
};
