import { copyFileSync } from "node:fs";
import { join } from "node:path";
import type { Point } from "../results.ts";
import type { Workshop } from "../workshop.ts";
import type { GrowthSize, Row } from "./row.ts";
import { growthSizes, inTurn } from "./row.ts";

/**
 * A long session's store, and a copy of its log for sides that open a file, so that their writes do not damage ours.
 * `act` determines whether the session has been compacted.
 */
export async function longSession(shop: Workshop, act: "compacted" | "grown", size: GrowthSize) {
  const sessionId = `${act}-${size}`;
  const folder = await shop.fixture(sessionId, async (folder) => {
    const store = join(folder, "store");
    await shop.make(act, { folder: store, sessionId, count: shop.size(growthSizes[size]) });
    if (shop.withPeers) copyFileSync(logOf(store, sessionId), join(folder, "copy.jsonl"));
  });
  return { store: join(folder, "store"), sessionId, file: join(folder, "copy.jsonl") };
}

function logOf(store: string, sessionId: string): string {
  return join(store, "agents/main/sessions", `${sessionId}.log.jsonl`);
}

export function openCase(
  shop: Workshop,
  act: "compacted" | "grown",
  size: GrowthSize,
  byteBudget?: number,
): Promise<Point[]> {
  const session = longSession(shop, act, size);
  const ours = async () => {
    const { store, sessionId } = await session;
    return { folder: store, sessionId, ...(byteBudget === undefined ? {} : { byteBudget }) };
  };
  const theirs = async () => {
    const { store, file } = await session;
    return { folder: store, file };
  };
  return shop.measure({
    name: size,
    size: shop.size(growthSizes[size]),
    act: "open",
    runs: shop.runs(5),
    jobs: { full: ours, pi: theirs, piNewer: theirs },
  });
}

export const row: Row = {
  name: "open-compacted",
  title: "Open a session that has been compacted: context built, ready to append",
  measure: (shop) =>
    inTurn(Object.keys(growthSizes) as GrowthSize[], (size) => openCase(shop, "compacted", size)),
};
