import { chineseWord, englishWord, seeded } from "../texts.ts";
import type { Row } from "./row.ts";
import { inTurn } from "./row.ts";

/** Typical queries: a common word, a rare one, two words, Chinese, and both languages. */
export function queriesFor(amount: number): string[] {
  const random = seeded(5);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low));
  const kinds = [
    () => englishWord(between(3000, 25_000)),
    () => englishWord(between(10, 150)),
    () => `${englishWord(between(150, 3000))} ${englishWord(between(10, 150))}`,
    () => chineseWord(between(2000, 15_000)),
    () => chineseWord(between(5, 200)),
    () => `${chineseWord(between(5, 1000))} ${englishWord(between(10, 500))}`,
  ];
  return Array.from({ length: amount }, (_, index) => kinds[index % kinds.length]?.() ?? "");
}

const sizes = { "10k": 10_000, "100k": 100_000, "1m": 1_000_000 } as const;

export const row: Row = {
  name: "search",
  title: "Full-text search, English and Chinese",
  measure: (shop) =>
    inTurn(Object.entries(sizes), ([name, full]) => {
      const count = shop.size(full);
      const folder = shop.fixture(`searchable-${name}`, (folder) =>
        shop.make("searchable", { folder, count }),
      );
      const ours = async () => ({ folder: await folder, queries: queriesFor(240) });
      const greps = async () => ({ folder: await folder, queries: queriesFor(shop.isQuick ? 6 : 12) });
      const jobs = { full: ours, grep: greps };
      return shop.measure({ name, size: count, act: "search", runs: shop.runs(3), jobs });
    }),
};
