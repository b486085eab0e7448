import fc from "fast-check";
import { expect, test } from "vitest";
import { countedIds } from "../../../test/support/twin-fetch.ts";
import { alphanumericId, countUsage, splitInFewPieces } from "./shared.ts";

test("text is split into several pieces that make it up, with no character cut in two", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const pieces = splitInFewPieces(text);
      expect(pieces.join("")).toBe(text);
      expect(pieces.length).toBeLessThanOrEqual(8);
      expect(pieces.every((piece) => piece.isWellFormed() && piece !== "")).toBe(true);
      if (text.length > 8) expect(pieces.length).toBeGreaterThan(1);
    }),
  );
});

test("IDs are letters and digits, and unique", () => {
  const newId = countedIds();
  const ids = Array.from({ length: 1_000 }, () => alphanumericId(newId, 9));
  expect(new Set(ids).size).toBe(1_000);
  expect(ids.every((id) => /^[a-zA-Z0-9]{9}$/.test(id))).toBe(true);
});

test("usage is the script's, or estimated", () => {
  const content = [
    { type: "thinking" as const, thinking: "a".repeat(40) },
    { type: "text" as const, text: "b".repeat(20) },
  ];
  expect(countUsage({ content }, 7)).toEqual({
    input: 7,
    cacheRead: 0,
    cacheWrite: 0,
    output: 15,
    reasoning: 10,
  });
  const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4 };
  expect(countUsage({ content, usage }, 7)).toEqual({
    input: 1,
    cacheRead: 3,
    cacheWrite: 4,
    output: 2,
    reasoning: 0,
  });
});
