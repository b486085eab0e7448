import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mostRetryAfter, retryAfterOf, retryDelay } from "./retry-delay.ts";

const now = Date.UTC(2026, 0, 1, 12);
const date = (ms: number) => new Date(now + ms).toUTCString();

describe("how long to wait", () => {
  test.each<[string, unknown, number | null]>([
    ["seconds", { "retry-after": "7" }, 7000],
    ["parts of seconds", { "Retry-After": " 0.5 " }, 500],
    ["milliseconds, which are finer", { "retry-after-ms": "250", "retry-after": "1" }, 250],
    ["a date", { "retry-after": date(9000) }, 9000],
    ["a date that has passed", { "retry-after": date(-9000) }, 0],
    ["a negative number", { "retry-after": "-5" }, null],
    ["a word", { "retry-after": "soon" }, null],
    ["a number with an exponent", { "retry-after": "1e9" }, null],
    ["milliseconds that are none", { "retry-after-ms": "x", "retry-after": "2" }, 2000],
    ["nothing", {}, null],
    ["no headers", undefined, null],
    ["something else", { "retry-after": 7 }, null],
  ])("[LOP8] %s", (_, headers, expected) => {
    expect(retryAfterOf(headers, now)).toBe(expected);
  });

  test("[LOP8] exponential with full jitter, bounded; what the server asks for goes before it, bounded too", () => {
    expect([1, 2, 3, 4, 5, 6, 20].map((retry) => retryDelay(retry, null, () => 0.999999))).toEqual([
      1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
    ]);
    expect(retryDelay(3, null, () => 0)).toBe(0);
    expect(retryDelay(1, 5000, () => 0)).toBe(5000);
    expect(retryDelay(1, 9_999_999, () => 0)).toBe(mostRetryAfter);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (retry, chance) => {
          const delay = retryDelay(retry, null, () => chance);
          return delay >= 0 && delay <= 30_000;
        },
      ),
    );
  });
});
