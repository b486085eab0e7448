import { join } from "node:path";
import { buildStaleConsole, measureConsole } from "../../scripts/build-console.ts";
import { root } from "../../scripts/steps.ts";
import { figureOf } from "../results.ts";
import { manySessions } from "./list.ts";
import type { Row } from "./row.ts";

const sessionId = "long";
const streaming = 20;

export const row: Row = {
  name: "console",
  title: "The console in a browser: first paint, longest frame, size",
  measure: async (shop) => {
    await buildStaleConsole((line) => shop.note(line));
    const file = join(root, "dist", "console");
    const { firstLoadBytes, totalBytes } = measureConsole();
    const entries = shop.size(5000);
    const long = await shop.fixture("console-long", (folder) =>
      shop.make("withHugeResult", { folder, sessionId, count: entries, payload: 1_000_000 }),
    );
    const empty = await shop.fixture("console-streams", (folder) =>
      shop.make("listed", { folder, count: 1 }),
    );
    const browser = { runs: shop.runs(3) };
    return [
      ...(await shop.measure({
        ...browser,
        name: "desk, 10k sessions",
        size: shop.size(10_000),
        act: "paint",
        jobs: { console: async () => ({ folder: await manySessions(shop, "10k"), file }) },
      })),
      ...(await shop.measure({
        ...browser,
        name: "session, 5k entries and a result of 1 MB",
        size: entries,
        act: "scroll",
        jobs: { console: () => ({ folder: long, file, sessionId }) },
      })),
      ...(await shop.measure({
        ...browser,
        name: "20 sessions stream",
        size: streaming,
        act: "stream",
        jobs: { console: () => ({ folder: empty, file, sessions: streaming }) },
      })),
      {
        case: "files, gzipped",
        size: 1,
        side: "skein console",
        figures: { firstLoadKb: figureOf([firstLoadBytes / 1000]), totalKb: figureOf([totalBytes / 1000]) },
      },
    ];
  },
};
