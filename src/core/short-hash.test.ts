import { expect, test } from "vitest";
import { shortHash } from "./short-hash.ts";

test("[TR7] a short hash is the same on every platform and well distributed", () => {
  expect(shortHash("")).toBe(shortHash(""));
  expect(shortHash("toolu_01")).toMatch(/^[0-9a-f]{16}$/);
  const names = new Set(Array.from({ length: 200_000 }, (_, at) => shortHash(`call_${at}`)));
  expect(names.size).toBe(200_000);
});
