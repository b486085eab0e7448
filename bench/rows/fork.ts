import { filledCase } from "./load.ts";
import type { Row } from "./row.ts";

export const row: Row = {
  name: "fork",
  title: "Fork a session of 5,000 messages",
  measure: (shop) =>
    shop.measure(filledCase(shop, "fork", ["full", "os", "pi", "piNewer", "mastra", "claude"])),
};
