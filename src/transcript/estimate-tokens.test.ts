import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pngOf } from "../../test/support/images.ts";
import type { AssistantMessage, ImageBlock, Usage } from "../core/messages.ts";
import type { TranscriptMessage } from "./contract.ts";
import { contextTokens, estimateTokens } from "./estimate-tokens.ts";
import { textTokens } from "./text-tokens.ts";

const image = (data: string): ImageBlock => ({ type: "image", data, mimeType: "image/png" });
const ofBlocks = (...content: Parameters<typeof estimateTokens>[0][number]["content"] & object[]) =>
  estimateTokens([{ role: "assistant", content } as never]) - estimateTokens([{ role: "user", content: "" }]);

test("counts every block of every message, and a little per message", () => {
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

test("accepts unknown block types and incomplete blocks", () => {
  expect(ofBlocks({ type: "toolCall", id: "t", name: "look" } as never)).toBeGreaterThan(0);
  expect(ofBlocks({ type: "video", url: "x" } as never)).toBe(0);
});

test.each([
  ["small", 300, 250, 100],
  ["the maximum size", 1200, 1200, 1920],
  ["larger: shrunk before it is sent", 4000, 3000, 1440],
  ["wide", 12_000, 100, 16],
])("counts an image by its size: %s", (_, width, height, tokens) => {
  expect(ofBlocks(image(pngOf(width, height).toString("base64")))).toBe(tokens);
});

test.each([
  ["no image", image(Buffer.from("hello").toString("base64"))],
  ["invalid base64", image("%%%")],
  ["empty", image("")],
  [
    "in a blob",
    {
      type: "text" as const,
      text: "[image]",
      skein: { blob: { sha256: "0", bytes: 9, mimeType: "image/png", was: "image" } },
    },
  ],
])("an image of unknown size counts as an average one: %s", (_, block) => {
  expect(ofBlocks(block as never)).toBe(1200);
});

const said = (text: string, timestamp = 1): TranscriptMessage => ({ role: "user", content: text, timestamp });
const answer = (usage: Usage | undefined, more: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: "assistant",
  content: [{ type: "text", text: "An answer of some words." }],
  ...(usage === undefined ? {} : { usage }),
  stopReason: "stop",
  timestamp: 2,
  ...more,
});
const usage = { input: 1000, cacheRead: 200, cacheWrite: 30, output: 4 };

describe("the tokens of a context", () => {
  test("are the provider's count of the last answer, plus an estimate of the rest", () => {
    const after = [said("What about tomorrow?", 3), said("And the day after?", 4)];
    const messages = [said("Hello"), answer({ input: 7 }), said("How are you?"), answer(usage), ...after];
    const estimated = estimateTokens(after);
    expect(contextTokens(messages)).toEqual({ tokens: 1234 + estimated, measured: 1234, estimated });
    expect(contextTokens(messages.slice(0, 4))).toEqual({ tokens: 1234, measured: 1234, estimated: 0 });
  });

  test("without a count everything is estimated", () => {
    const messages = [said("Hello"), answer(undefined)];
    const estimated = estimateTokens(messages);
    expect(contextTokens(messages)).toEqual({ tokens: estimated, measured: 0, estimated });
    expect(contextTokens([])).toEqual({ tokens: 0, measured: 0, estimated: 0 });
  });

  test.each<[string, Usage, number]>([
    ["only the total", { totalTokens: 50 }, 50],
    ["the parts, if both are given", { ...usage, totalTokens: 99 }, 1234],
    ["only an answer, without its request", { output: 40 }, 0],
    ["zeros", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 }, 0],
    ["no numbers", { input: Number.NaN, output: -5, totalTokens: Number.POSITIVE_INFINITY }, 0],
  ])("%s", (_, counted, measured) => {
    expect(contextTokens([said("Hello"), answer(counted)]).measured).toBe(measured);
  });

  test.each(["error", "aborted"])("the count of an answer that ended in %s is not used", (stopReason) => {
    const messages = [said("a"), answer({ input: 10 }), said("b"), answer(usage, { stopReason })];
    const { measured, estimated } = contextTokens(messages);
    expect(measured).toBe(10);
    expect(estimated).toBe(estimateTokens(messages.slice(2)));
  });

  test("a count from before the last compaction is never trusted", () => {
    const kept = [said("kept", 10), answer({ input: 90_000 }, { timestamp: 20 })];
    const summary = said("<summary>", 30);
    const after = said("And now?", 40);
    const all = estimateTokens([summary, ...kept, after]);
    expect(contextTokens([summary, ...kept, after], { compactedAt: 30 })).toEqual({
      tokens: all,
      measured: 0,
      estimated: all,
    });
    const answered = [summary, ...kept, after, answer(usage, { timestamp: 50 })];
    expect(contextTokens(answered, { compactedAt: 30 }).measured).toBe(1234);
  });

  test("a count from the same moment, without a time, or after an older message is not trusted", () => {
    for (const timestamp of [30, undefined])
      expect(
        contextTokens([answer(usage, { timestamp } as Partial<AssistantMessage>)], { compactedAt: 30 })
          .measured,
      ).toBe(0);
    for (const kept of [said("kept", 20), said("kept", 30)])
      expect(contextTokens([answer(usage, { timestamp: 99 }), kept], { compactedAt: 30 }).measured).toBe(0);
  });

  test("for any messages: the sum of both, and no measurement older than the compaction", () => {
    const message = fc.oneof(
      fc.integer({ min: 0, max: 60 }).map((time) => said("text", time)),
      fc
        .record({ time: fc.integer({ min: 0, max: 60 }), input: fc.integer({ min: 1, max: 9 }) })
        .map(({ time, input }) => answer({ input: input * 1000 + time }, { timestamp: time })),
    );
    fc.assert(
      fc.property(fc.array(message), fc.integer({ min: 0, max: 60 }), (messages, compactedAt) => {
        const { tokens, measured, estimated } = contextTokens(messages, { compactedAt });
        expect(tokens).toBe(measured + estimated);
        if (measured > 0) expect(measured % 1000).toBeGreaterThan(compactedAt);
      }),
    );
  });
});
