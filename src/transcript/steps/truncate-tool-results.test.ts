import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyTurns, kinds, run } from "../../../test/support/sized-turns.ts";
import { textOf } from "../../core/messages.ts";
import type { TranscriptMessage } from "../contract.ts";
import {
  sessionLikelyHasOversizedToolResults,
  toolResultLimit,
  truncateToolResults,
} from "./truncate-tool-results.ts";

const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
const result = (...texts: string[]): TranscriptMessage => ({
  role: "toolResult",
  toolCallId: "a",
  toolName: "read",
  content: texts.map((text) => (text === "image" ? image : { type: "text", text })),
  isError: false,
});

const truncated = (messages: readonly TranscriptMessage[], contextWindow?: number) =>
  run(
    (each, record) =>
      truncateToolResults(each, { contextWindow, record } as Parameters<typeof truncateToolResults>[1]),
    messages,
    "truncateToolResults",
  );

function lengths(messages: readonly TranscriptMessage[]): number[] {
  return messages.flatMap((message) =>
    message.role === "toolResult"
      ? [message.content.reduce((sum, each) => sum + (each.type === "text" ? each.text.length : 0), 0)]
      : [],
  );
}

describe("truncateToolResults", () => {
  test.each([
    [200_000, 240_000],
    [1_000_000, 400_000],
    [8192, 9830],
    [0, 1],
    [undefined, 400_000],
    [Number.NaN, 400_000],
  ])("[SIZ3] with a window of %s tokens, one result may have %s characters", (window, characters) => {
    expect(toolResultLimit(window)).toBe(characters);
  });

  test("[SIZ3] a result that is too long keeps head and tail; others are unchanged", () => {
    const long = result(`head${"x".repeat(20_000)}tail`);
    const talk = [result("short"), long, { role: "user" as const, content: "y".repeat(99_999) }];
    const { messages, changes } = truncated(talk, 8192);
    expect([messages[0], messages[2]]).toEqual([talk[0], talk[2]]);
    expect(lengths(messages)).toEqual([5, 9830]);
    expect(textOf(messages[1]?.content ?? "")).toMatch(
      /^headx+\n\[… cut from 20008 characters to fit the context …\]\nx+tail$/,
    );
    expect(changes).toEqual([
      {
        step: "truncateToolResults",
        entryId: "1",
        kind: "result_truncated",
        note: "The result from read had 20008 characters and was truncated to 9830.",
      },
    ]);
  });

  test("[SIZ3] several texts are shortened in proportion, short ones and images stay, and none is shortened for another", () => {
    const talk = [result("a".repeat(30_000), "image", "note", "b".repeat(10_000)), result("c".repeat(9000))];
    const { messages } = truncated(talk, 8192);
    const blocks = messages[0]?.role === "toolResult" ? messages[0].content : [];
    expect(blocks.map(({ type }) => type)).toEqual(["text", "image", "text", "text"]);
    const [first, , second, third] = blocks.map((block) => (block.type === "text" ? block.text.length : 0));
    expect(second).toBe(4);
    expect([first, third]).toEqual([6531, 3294]);
    expect(messages[1]).toBe(talk[1]);
  });

  test("[SIZ3] nothing is left empty, however little room there is", () => {
    const talk = [
      result(...Array.from({ length: 50 }, () => "ab"), "image"),
      result("  ", "😀😀😀"),
      result("   "),
    ];
    const { messages } = truncated(talk, 1);
    expect(messages.map((each) => textOf(each.content))).toEqual(["a", "…", "…"]);
    expect(JSON.stringify(messages[0])).toContain("image/png");
  });

  test("[SIZ3] [TR16] every result fits afterwards, no pair is split, and a second pass changes nothing", () => {
    fc.assert(
      fc.property(anyTurns, fc.integer({ min: 0, max: 20_000 }), (messages, window) => {
        const once = truncated(messages, window);
        expect(Math.max(0, ...lengths(once.messages))).toBeLessThanOrEqual(toolResultLimit(window));
        expect(once.messages).toHaveLength(messages.length);
        expect(once.changes.length === 0).toBe(once.messages === messages);
        for (const [index, message] of once.messages.entries()) {
          const before = messages[index] as TranscriptMessage;
          const wasWhole = textOf(before.content).isWellFormed();
          expect(textOf(message.content).isWellFormed()).toBe(wasWhole);
          if (textOf(before.content).trim() !== "") expect(textOf(message.content).trim()).not.toBe("");
        }
        const twice = truncated(once.messages, window);
        expect(kinds(twice.changes)).toEqual([]);
        expect(twice.messages).toBe(once.messages);
      }),
    );
  });

  test("decides whether shortening is worthwhile", () => {
    const talk = [
      { role: "user" as const, content: "x".repeat(99_999) },
      result("y".repeat(9000), "z".repeat(900)),
    ];
    expect(sessionLikelyHasOversizedToolResults(talk, 8192)).toBe(true);
    expect(sessionLikelyHasOversizedToolResults(talk, 16_384)).toBe(false);
    expect(sessionLikelyHasOversizedToolResults(talk)).toBe(false);
    expect(sessionLikelyHasOversizedToolResults([], 1)).toBe(false);
  });
});
