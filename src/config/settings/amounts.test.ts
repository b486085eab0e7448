import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatBytes, formatDuration, mostAmount, parseBytes, parseDuration } from "./amounts.ts";

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

describe("amounts", () => {
  test.each([
    ["1ms", 1],
    ["250ms", 250],
    ["90s", 90_000],
    ["45m", 45 * minute],
    ["1.5h", 90 * minute],
    ["30d", 30 * day],
    ["30 d", 30 * day],
    ["2w", 14 * day],
  ])("the duration %s", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    "",
    "30",
    "d",
    "30D",
    "30 days",
    "-1d",
    "0d",
    "0.0h",
    "1e3s",
    "1..5h",
    "30d ",
    "9999999999999w",
  ])("%j is not a duration", (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  test.each([
    ["1B", 1],
    ["10GB", 1e10],
    ["1.5MB", 1_500_000],
    ["512MiB", 512 * 1024 ** 2],
    ["2 TB", 2e12],
  ])("the size %s", (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  test.each(["", "10", "10gb", "10G", "-1KB", "0GB", "1e3B", "9999999999TB"])("%j is not a size", (text) => {
    expect(parseBytes(text)).toBeNull();
  });

  test("formatted values are parsed back", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: mostAmount }),
        fc.constantFrom(1, 1000, 1024, hour, day),
        (count, unit) => {
          const amount = count * unit <= mostAmount ? count * unit : count;
          expect(parseDuration(formatDuration(amount))).toBe(amount);
          expect(parseBytes(formatBytes(amount))).toBe(amount);
        },
      ),
    );
    expect([formatDuration(90 * minute), formatDuration(30 * day), formatBytes(1024 ** 3)]).toEqual([
      "90m",
      "30d",
      "1GiB",
    ]);
  });
});
