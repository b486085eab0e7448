import { describe, expect, test } from "vitest";
import { costOf, priceOf } from "./prices.ts";

describe("prices", () => {
  test.each([
    ["anthropic", "claude-sonnet-4-5", { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }],
    ["anthropic", "claude-sonnet-4-5-20250929", { input: 3, output: 15 }],
    ["anthropic", "claude-opus-4-20250514", { input: 15, output: 75 }],
    ["anthropic", "claude-opus-4-5-20251101", { input: 5, output: 25 }],
    ["anthropic", "claude-3-5-haiku-latest", { input: 0.8, output: 4 }],
    ["openai", "gpt-5", { input: 1.25, output: 10, cacheRead: 0.125 }],
    ["openai", "gpt-5-mini-2025-08-07", { input: 0.25, output: 2 }],
    ["google", "gemini-2.0-flash-001", { input: 0.1, output: 0.4 }],
  ])("%s/%s", (provider, model, price) => {
    expect(priceOf(provider, model)).toMatchObject(price);
  });

  test.each([
    ["anthropic", "claude-opus-4-7"],
    ["anthropic", "claude"],
    ["openai", "gpt-5.9"],
    ["openai", "gpt-5-codex"],
    ["openai", "gpt-4o-audio-preview"],
    ["google", "gemini-2.5-pro"],
    ["proxy", "gpt-5"],
    ["constructor", "name"],
  ])("the price of %s/%s is unknown", (provider, model) => {
    expect(priceOf(provider, model)).toBeNull();
  });

  test("each kind of token has its price, and cached tokens without a price cost as much as input", () => {
    const usage = { input: 1_000_000, output: 200_000, cacheRead: 500_000, cacheWrite: 100_000 };
    expect(costOf(usage, { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 4 })).toEqual({
      input: 2,
      output: 2,
      cacheRead: 0.1,
      cacheWrite: 0.4,
      total: 4.5,
    });
    expect(costOf(usage, { input: 2, output: 10 })).toMatchObject({ cacheRead: 1, cacheWrite: 0.2 });
    expect(costOf({}, { input: 2, output: 10 }).total).toBe(0);
  });
});
