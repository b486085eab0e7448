import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openCall } from "../../../test/support/turn.ts";
import type { AnsweredCall } from "./answer-calls.ts";
import { canonicalJson } from "./canonical-json.ts";
import { Repeats } from "./repeats.ts";

const done = (name: string, args: Record<string, unknown>, said: string, isError = false): AnsweredCall => ({
  call: openCall("c", name, args),
  result: {
    role: "toolResult",
    toolCallId: "c",
    toolName: name,
    content: [{ type: "text", text: said }],
    isError,
  },
});
const same = done("read", { a: 1 }, "x");

describe("calls again and again", () => {
  test.each<[string, AnsweredCall[][], boolean]>([
    ["the same three times", [[same], [same], [same]], true],
    ["twice", [[same], [same]], false],
    ["three times in one message", [[same, same, same], [same]], false],
    ["another in between", [[same], [same], [done("find", {}, "x")], [same], [same]], false],
    ["another result", [[same], [same], [done("read", { a: 1 }, "y")]], false],
    ["a result that failed", [[same], [same], [done("read", { a: 1 }, "x", true)]], false],
    ["other arguments", [[same], [same], [done("read", { a: 2 }, "x")]], false],
    [
      "a pair, in any order",
      [
        [same, done("b", {}, "")],
        [done("b", {}, ""), same],
        [same, done("b", {}, "")],
      ],
      true,
    ],
    ["beside something new each time", [1, 2, 3].map((at) => [same, done("work", { at }, "ok")]), false],
  ])("[LOP4] %s", (_, steps, isLoop) => {
    const repeats = new Repeats();
    expect(steps.map((step) => repeats.see(step)).at(-1)).toBe(isLoop);
  });

  test("[LOP4] the same value has the same text, whatever the order of its fields; another has another", () => {
    const shuffled = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(shuffled);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .toReversed()
          .map(([name, each]) => [name, shuffled(each)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const parsed = JSON.parse(JSON.stringify(value)) as unknown;
        return canonicalJson(parsed) === canonicalJson(shuffled(parsed));
      }),
    );
    expect(canonicalJson({ a: 1 })).not.toBe(canonicalJson({ a: 2 }));
    expect(canonicalJson({ a: 1 })).not.toBe(canonicalJson([["a", 1]]));
  });
});
