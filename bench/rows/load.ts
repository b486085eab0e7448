import type { ActName } from "../side.ts";
import type { Side, SideName } from "../sides.ts";
import { sides } from "../sides.ts";
import type { Case, Workshop } from "../workshop.ts";
import type { Row } from "./row.ts";

export const loadedMessages = 5000;

/**
 * An act on a session of 5,000 messages written by each side itself. Forks change the folder, so they use a separate
 * one.
 */
export function filledCase(shop: Workshop, act: ActName, names: readonly SideName[]): Case {
  const size = shop.size(loadedMessages);
  const jobs = names.map((name) => {
    const { most = Number.POSITIVE_INFINITY }: Side = sides[name];
    const count = Math.min(size, shop.size(most));
    return [
      name,
      async () => ({ folder: await shop.filled(name, count, act === "fork" ? "fork" : "read"), count }),
    ];
  });
  return { name: "5,000", size, act, runs: shop.runs(5), jobs: Object.fromEntries(jobs) };
}

export const row: Row = {
  name: "load",
  title: "Load a whole session of 5,000 messages",
  measure: (shop) =>
    shop.measure(
      filledCase(shop, "load", [
        "full",
        "jsonl",
        "sqlite",
        "pi",
        "piNewer",
        "mastra",
        "adk",
        "claude",
        "cloudflare",
        "langgraph",
      ]),
    ),
};
