import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createRedactor } from "../access/redaction/redactor.ts";
import { readTime } from "../core/clock.ts";
import { mapConcurrently } from "../core/concurrency.ts";
import { cutSummary } from "./session-list.ts";
import { readKinds } from "./sessions-list.ts";

describe("helpers of the reading tools", () => {
  test.each([
    ["2026-03-29", "2026-03-29T00:00:00.000Z"],
    ["2026-03-29T14:40", "2026-03-29T14:40:00.000Z"],
    ["2026-03-29 14:40:05.5", "2026-03-29T14:40:05.500Z"],
    ["2026-03-29T14:40:00+02:00", "2026-03-29T12:40:00.000Z"],
  ])("%s is %s", (text, time) => {
    expect(readTime(text)).toBe(Date.parse(time));
    expect(readTime(Date.parse(time))).toBe(Date.parse(time));
  });

  test.each(["yesterday", "2026", "29.3.2026", "2026-13-45", "2026-03-29T14:40 CET", Number.NaN])(
    "%s is not a time",
    (value) => {
      expect(readTime(value)).toBeNull();
    },
  );

  test("kinds are lowercased, and an unknown one is named", () => {
    expect(readKinds(["Main", " CRON ", "main"])).toEqual({ kinds: ["main", "cron"] });
    expect(readKinds([])).toEqual({ kinds: [] });
    expect(readKinds(["main", "chat"])).toEqual({ unknown: "chat" });
  });

  test("a shortened summary shows no beginning of a secret", () => {
    const token = `ghp_${"a1B2".repeat(9)}`;
    const redactor = createRedactor();
    fc.assert(
      fc.property(fc.integer({ min: 120, max: 199 }), (before) => {
        const line = `${"w ".repeat(100).slice(0, before - 1)} ${token} tail`;
        const summary = line.length > 200 ? `${line.slice(0, 199)}…` : line;
        expect(cutSummary(summary, redactor)).not.toMatch(/ghp_a1B2a/);
      }),
    );
    expect(cutSummary(`${"京都".repeat(99)}京…`, redactor)).toBe(`${"京都".repeat(99)}京…`);
    expect(cutSummary("n".repeat(300), redactor)).toBe(`${"n".repeat(199)}…`);
  });

  test("runs four at a time, and keeps the order", async () => {
    let [open, most] = [0, 0];
    const results = await mapConcurrently([...Array(20).keys()], 4, async (item) => {
      open += 1;
      most = Math.max(most, open);
      for (let turns = 0; turns < (item * 7) % 5; turns++) await Promise.resolve();
      open -= 1;
      return item * 2;
    });
    expect(most).toBe(4);
    expect(results).toEqual([...Array(20).keys()].map((item) => item * 2));
  });
});
