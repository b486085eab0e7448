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
/** An answer whose request was counted, and estimated at `requestTokens`. */
const measured = (requestTokens: number, given: Usage = usage, more: Partial<AssistantMessage> = {}) =>
  answer(given, { skein: { requestTokens }, ...more });
const tokensIn = (
  messages: readonly TranscriptMessage[],
  options: Parameters<typeof contextTokens>[1] = {},
): number => contextTokens(messages, options).tokens;

describe("the tokens of a context", () => {
  test("are the provider's last count, plus the estimate for everything since", () => {
    const request = [said("Hello"), measured(7, { input: 7 }), said("How are you?")];
    const after = [measured(estimateTokens(request)), said("What about tomorrow?", 3), said("And then?", 4)];
    expect(tokensIn([...request, ...after])).toBe(1230 + estimateTokens(after));
    const standing = 500;
    const withTools = [...request, measured(estimateTokens(request) + standing)];
    expect(tokensIn(withTools, { standing })).toBe(1230 + estimateTokens(withTools.slice(3)));
  });

  test("are scaled down with a request that has become smaller", () => {
    const messages = [said("Hello"), measured(10 * estimateTokens([said("Hello"), answer(usage)]))];
    expect(tokensIn(messages)).toBe(123);
  });

  test("are an estimate without a count, or if the counted request is unknown", () => {
    for (const last of [answer(undefined), answer(usage), measured(10, usage, { skein: {} })]) {
      const messages = [said("Hello"), last];
      const estimated = 9 + estimateTokens(messages);
      expect(contextTokens(messages, { standing: 9 })).toEqual({ tokens: estimated, estimated });
    }
    expect(contextTokens([])).toEqual({ tokens: 0, estimated: 0 });
  });

  test.each<[string, Usage, number]>([
    ["only the total", { totalTokens: 50, output: 10 }, 40],
    ["the parts, if both are given", { ...usage, totalTokens: 99 }, 1230],
    ["only an answer, without its request", { output: 40, totalTokens: 40 }, 9],
    ["zeros", { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 }, 9],
    ["no numbers", { input: Number.NaN, output: -5, totalTokens: Number.POSITIVE_INFINITY }, 9],
  ])("%s", (_, counted, tokens) => {
    const messages = [said("Hello"), measured(9, counted)];
    expect(tokensIn(messages, { standing: 9 - estimateTokens(messages) })).toBe(tokens);
  });

  test.each([
    ["an answer that ended in error", { stopReason: "error" }],
    ["an answer that was aborted", { stopReason: "aborted" }],
    ["another model's answer", { model: "other" }],
  ])("the count of %s is not used", (_, more) => {
    const by = { provider: "desk", model: "m" };
    const messages = [
      said("a"),
      measured(8, { input: 10 }, by),
      said("b"),
      measured(9, usage, { ...by, ...more }),
    ];
    expect(tokensIn(messages, { model: by })).toBe(10 + estimateTokens(messages) - 8);
  });

  test("a count from before the last compaction is never used", () => {
    const kept = [said("kept", 10), measured(80_000, { input: 90_000 }, { timestamp: 20 })];
    const messages = [said("<summary>", 30), ...kept, said("And now?", 40)];
    expect(tokensIn(messages, { compactedAt: 30 })).toBe(estimateTokens(messages));
    const answered = [...messages, measured(1, usage, { timestamp: 50 })];
    expect(tokensIn(answered, { compactedAt: 30 })).toBe(1230 + estimateTokens(answered) - 1);
  });

  test("a count from the same moment, without a time, or after an older message is not used", () => {
    for (const timestamp of [30, undefined]) {
      const messages = [measured(1, usage, { timestamp } as Partial<AssistantMessage>)];
      expect(tokensIn(messages, { compactedAt: 30 })).toBe(estimateTokens(messages));
    }
    for (const kept of [said("kept", 20), said("kept", 30)]) {
      const messages = [measured(1, usage, { timestamp: 99 }), kept];
      expect(tokensIn(messages, { compactedAt: 30 })).toBe(estimateTokens(messages));
    }
  });

  test("for any messages: grow with every message, and are never negative", () => {
    const message = fc.oneof(
      fc.integer({ min: 0, max: 60 }).map((time) => said("text", time)),
      fc
        .record({
          timestamp: fc.integer({ min: 0, max: 60 }),
          input: fc.integer({ min: 1, max: 9000 }),
          requestTokens: fc.integer({ min: 0, max: 9000 }),
        })
        .map(({ timestamp, input, requestTokens }) => measured(requestTokens, { input }, { timestamp })),
    );
    fc.assert(
      fc.property(fc.array(message), fc.integer({ min: 0, max: 59 }), (messages, compactedAt) => {
        const tokens = tokensIn(messages, { compactedAt });
        expect(tokens).toBeGreaterThanOrEqual(0);
        expect(tokensIn([...messages, said("More.", 60)], { compactedAt })).toBeGreaterThanOrEqual(tokens);
      }),
    );
  });
});
