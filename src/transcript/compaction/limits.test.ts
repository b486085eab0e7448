import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { byteBudgetFor, compactionLimits, shouldCompact } from "./limits.ts";

describe("the limits of a window", () => {
  test.each([
    // window, reserve, threshold, kept tokens, maximum kept tokens
    [8_000, 2_000, 6_000, 3_200, 3_200],
    [32_000, 8_000, 24_000, 12_800, 12_800],
    [50_000, 12_500, 37_500, 20_000, 20_000],
    [80_000, 20_000, 60_000, 20_000, 30_000],
    [200_000, 20_000, 180_000, 20_000, 90_000],
    [1_000_000, 20_000, 980_000, 20_000, 490_000],
  ])("[CMP1] of %i tokens", (window, reserve, threshold, keep, mostKept) => {
    expect(compactionLimits(window)).toMatchObject({ reserve, threshold, keep, mostKept });
    expect(shouldCompact({ tokens: threshold, contextWindow: window })).toBe(false);
    expect(shouldCompact({ tokens: threshold + 1, contextWindow: window })).toBe(true);
  });

  test("[CMP1] a context cut by its byte budget is due, whatever its token count", () => {
    expect(shouldCompact({ tokens: 1, contextWindow: 200_000, cut: "e1" })).toBe(true);
    expect(shouldCompact({ tokens: 1, contextWindow: 200_000, cut: null })).toBe(false);
  });

  test("[CMP1] the kept part, a summary and the pending request fit below the threshold", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2_000, max: 2_000_000 }), fc.nat(3), (window, compactions) => {
        const { threshold, keep, mostKept, summaryTokens } = compactionLimits(window, compactions);
        expect(keep).toBeLessThanOrEqual(mostKept);
        expect(mostKept + summaryTokens + window * 0.05).toBeLessThan(threshold);
      }),
    );
  });

  test("[CMP15] each further compaction of a run keeps half as much", () => {
    const keeps = [0, 1, 2].map((compactions) => compactionLimits(200_000, compactions).keep);
    expect(keeps).toEqual([20_000, 10_000, 5_000]);
  });

  test("[CMP1] an invalid window still yields limits", () => {
    expect(shouldCompact({ tokens: 1e9, contextWindow: Number.POSITIVE_INFINITY })).toBe(false);
    expect(shouldCompact({ tokens: 1, contextWindow: Number.NaN })).toBe(false);
    expect(compactionLimits(-5)).toMatchObject({ threshold: 0, keep: 0, summaryTokens: 0 });
    expect([0, Number.NaN, Number.POSITIVE_INFINITY].map(byteBudgetFor)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(byteBudgetFor(200_000)).toBe(1_600_000);
  });
});
