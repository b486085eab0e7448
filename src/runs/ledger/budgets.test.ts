import { describe, expect, test } from "vitest";
import {
  addUsage,
  budgetExceeded,
  defaultLimits,
  figuresOf,
  noFigures,
  overSpent,
  reserveRun,
  spend,
} from "./budgets.ts";
import { noUsage } from "./run-ledger.ts";

const usage = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3, costUsd: 0.5 };
const limits = { ...defaultLimits, tokens: 6, costUsd: 1 };

describe("the budget of a root", () => {
  test("[FAM13] has default limits of 8 hops and 100 runs; tokens and cost only if set", () => {
    expect(defaultLimits).toEqual({ hops: 8, runs: 100, tokens: null, costUsd: null, pingPong: 5 });
  });

  test.each([
    [{ hops: 8, pairCount: null }, noFigures, null],
    [{ hops: 9, pairCount: null }, noFigures, { limit: "hops", allowed: 8, figure: 9 }],
    [{ hops: 0, pairCount: null }, { ...noFigures, runs: 99 }, null],
    [
      { hops: 0, pairCount: null },
      { ...noFigures, runs: 100 },
      { limit: "runs", allowed: 100, figure: 101 },
    ],
    [{ hops: 0, pairCount: 5 }, noFigures, null],
    [{ hops: 0, pairCount: 6 }, noFigures, { limit: "pingPong", allowed: 5, figure: 6 }],
    [{ hops: 0, pairCount: null }, { ...noFigures, tokens: 6 }, null],
    [
      { hops: 0, pairCount: null },
      { ...noFigures, tokens: 7 },
      { limit: "tokens", allowed: 6, figure: 7 },
    ],
    [
      { hops: 0, pairCount: null },
      { ...noFigures, knownCostUsd: 2 },
      { limit: "costUsd", allowed: 1, figure: 2 },
    ],
  ] as const)("[FAM13] %j on %j: %j", (asked, figures, refusal) => {
    const reserved = reserveRun(figures, asked, limits);
    if (refusal !== null) expect(reserved).toEqual({ refusal });
    else expect(reserved).toEqual({ figures: { ...figures, runs: figures.runs + 1, hops: asked.hops } });
  });

  test("[LIB21] costs are summed, and a step without a price makes the sum unknown", () => {
    const twice = spend(spend(noFigures, usage), usage);
    expect(figuresOf("r", twice)).toEqual({
      rootId: "r",
      runs: 0,
      tokens: 6,
      costUsd: 1,
      knownCostUsd: 1,
      hops: 0,
    });
    expect(overSpent(twice, limits)).toBe(null);
    const { costUsd: _, ...unpriced } = usage;
    const more = spend(twice, unpriced);
    expect(figuresOf("r", more).costUsd).toBe(null);
    expect(overSpent(more, limits)).toEqual({ limit: "tokens", allowed: 6, figure: 9 });
    expect(addUsage(addUsage(noUsage, usage), usage)).toEqual({
      ...usage,
      input: 2,
      output: 4,
      totalTokens: 6,
      costUsd: 1,
    });
    expect(addUsage(usage, unpriced).costUsd).toBe(undefined);
  });

  test("[FAM13] a refusal names the limit, the numbers and a remedy", () => {
    const error = budgetExceeded("root-1", { limit: "runs", allowed: 100, figure: 101 });
    expect(error.code).toBe("budget_exceeded");
    expect(error.status).toBe(429);
    expect(error.message).toContain("root-1");
    expect(error.message).toContain("the limit for runs: 101 (maximum: 100)");
    expect(error.remedy).toContain("budget.runs");
  });
});
