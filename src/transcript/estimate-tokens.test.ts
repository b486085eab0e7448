import { expect, test } from "vitest";
import { estimateTokens, textTokens } from "./estimate-tokens.ts";

test("[CLI23] tokens are estimated by script: four letters, or one character of Chinese, Japanese or Korean", () => {
  expect(textTokens("abcd".repeat(10))).toBe(10);
  expect(textTokens("西阵小料理")).toBe(5);
  expect(textTokens("서울 abc")).toBe(3);
  expect(textTokens("")).toBe(0);
});

test("[CLI23] every block counts", () => {
  const call = { type: "toolCall" as const, id: "t", name: "abcd", arguments: {} };
  const image = { type: "image" as const, data: "AAAA", mimeType: "image/png" };
  const blocks = [{ type: "thinking" as const, thinking: "abcd" }, call];
  const said = estimateTokens([{ role: "user", content: "abcd" }]);
  expect(said).toBe(5);
  expect(estimateTokens([{ role: "assistant", content: blocks }])).toBe(4 + 1 + 2);
  expect(estimateTokens([{ role: "user", content: [image] }])).toBeGreaterThan(100);
});
