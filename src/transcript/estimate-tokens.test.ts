import { expect, test } from "vitest";
import { pngOf } from "../../test/support/images.ts";
import type { ImageBlock } from "../core/messages.ts";
import { estimateTokens } from "./estimate-tokens.ts";
import { textTokens } from "./text-tokens.ts";

const image = (data: string): ImageBlock => ({ type: "image", data, mimeType: "image/png" });
const ofBlocks = (...content: Parameters<typeof estimateTokens>[0][number]["content"] & object[]) =>
  estimateTokens([{ role: "assistant", content } as never]) - estimateTokens([{ role: "user", content: "" }]);

test("[TOK3] every block of every message counts, and each message a little", () => {
  const call = { type: "toolCall" as const, id: "t", name: "look", arguments: { at: "the door" } };
  const none = estimateTokens([{ role: "user", content: "" }]);
  expect(none).toBeGreaterThan(0);
  expect(estimateTokens([])).toBe(0);
  expect(ofBlocks({ type: "thinking", thinking: "abcd" })).toBe(textTokens("abcd"));
  expect(ofBlocks({ type: "text", text: "abcd" })).toBe(1);
  expect(ofBlocks(call)).toBe(textTokens('look{"at":"the door"}'));
  const [one, two] = [
    { role: "user" as const, content: "one" },
    { role: "user" as const, content: "two" },
  ];
  expect(estimateTokens([one, two])).toBe(estimateTokens([one]) + estimateTokens([two]));
});

test("[TOK3] blocks of other types, and what a block lacks, are no problem", () => {
  expect(ofBlocks({ type: "toolCall", id: "t", name: "look" } as never)).toBeGreaterThan(0);
  expect(ofBlocks({ type: "video", url: "x" } as never)).toBe(0);
});

test.each([
  ["small", 300, 250, 100],
  ["as large as it may be", 1200, 1200, 1920],
  ["larger: made smaller before it is sent", 4000, 3000, 1440],
  ["wide", 12_000, 100, 16],
])("[TOK4] an image counts by its size: %s", (_, width, height, tokens) => {
  expect(ofBlocks(image(pngOf(width, height).toString("base64")))).toBe(tokens);
});

test.each([
  ["no image", image(Buffer.from("hello").toString("base64"))],
  ["no base64", image("%%%")],
  ["empty", image("")],
  [
    "in a blob",
    {
      type: "text" as const,
      text: "[image]",
      skein: { blob: { sha256: "0", bytes: 9, mimeType: "image/png", was: "image" } },
    },
  ],
])("[TOK4] an image whose size cannot be seen counts as a usual one: %s", (_, block) => {
  expect(ofBlocks(block as never)).toBe(1200);
});
