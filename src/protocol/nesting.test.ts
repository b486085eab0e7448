import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { atOnce } from "../core/slices.ts";
import { deepestNesting, isTooDeep, NestingMeter } from "./nesting.ts";

const bytesOf = (text: string) => Buffer.from(text, "utf8");
const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const long = " ".repeat(64 * 1024);

describe("the nesting depth of JSON", () => {
  test.each([
    ["at the limit", nested(deepestNesting) + long, false],
    ["above the limit", nested(deepestNesting + 1) + long, true],
    ["of objects", `${'{"a":'.repeat(deepestNesting + 1)}${long}`, true],
    ["inside a string", `"${nested(5000)}\\"${nested(5000)}\\\\"${long}`, false],
    ["after a string", `["\\"\\\\",${nested(deepestNesting)}]${long}`, true],
    ["next to each other", `[${"[],".repeat(50_000)}[]]`, false],
    ["deep but short", nested(30_000), false],
  ])("[ATG7] %s", (_, text, expected) => {
    expect(atOnce(isTooDeep(bytesOf(text)))).toBe(expected);
  });

  test("[ATG7] is the same however the text is split", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.integer({ min: 998, max: 1001 }), (inner, at, levels) => {
        const bytes = bytesOf(`${"[".repeat(levels)}${inner}`);
        const meter = new NestingMeter();
        const cut = at % bytes.length;
        const isDeep = meter.take(bytes.subarray(0, cut)) || meter.take(bytes.subarray(cut));
        expect(isDeep).toBe(new NestingMeter().take(bytes));
      }),
    );
  });
});
