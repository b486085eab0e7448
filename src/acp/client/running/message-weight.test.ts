import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { atOnce } from "../../../core/slices.ts";
import { deepestNesting } from "../../../protocol/nesting.ts";
import { MessageLines } from "./message-lines.ts";
import { mostValues, tooHeavy } from "./message-weight.ts";

const long = "x".repeat(70_000);
const update = (value: string) => `{"text":"${long}","value":${value}}`;
const nested = (levels: number) => update("[".repeat(levels) + "]".repeat(levels));
const heavy = (text: string) => atOnce(tooHeavy(Buffer.from(text)));

describe("what a message may hold", () => {
  test.each([
    ["as deep as may be", nested(deepestNesting - 1), null],
    ["deeper", nested(deepestNesting), "of more than 1000 levels"],
    ["as many values as may be", update(`[${"1,".repeat(mostValues - 3)}1]`), null],
    ["more of them", update(`[${"1,".repeat(mostValues)}1]`), "of more than 250000 values"],
    ["as many in objects", update(`[${"{},".repeat(mostValues / 2)}{}]`), "of more than 250000 values"],
    ["signs inside of a text", update(JSON.stringify('[{,"\\'.repeat(100_000))), null],
    ["a text that ends in backslashes", update(`"\\\\\\\\",${"[".repeat(2000)}`), "of more than 1000 levels"],
    ["a text without an end", `{"text":"${long}${"[".repeat(2000)}`, null],
    ["megabytes of text", update(JSON.stringify("y".repeat(5_000_000))), null],
    ["what is short, however deep", "[".repeat(60_000), null],
  ])("[ATA10] %s", (_, text, expected) => {
    expect(heavy(text)).toBe(expected);
  });

  test("[ATA10] a text hides nothing that stands behind it, and shows nothing of what it holds", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', "\\", "[", "{", ",", "a", "\n", "é") }), (text) => {
        const said = JSON.stringify(text);
        expect(heavy(update(said))).toBe(null);
        expect(heavy(update(`${said},${"[".repeat(deepestNesting + 1)}`))).toBe("of more than 1000 levels");
      }),
      { numRuns: 50 },
    );
  });

  test("[ATA10] a message that holds more is not parsed: nothing more is read", async () => {
    const lines = new MessageLines();
    const line = (text: string) => Buffer.from(`${text}\n`);
    expect(await lines.take(line(nested(10))).next()).toMatchObject({ done: false });
    await expect(lines.take(line(nested(5_000_000))).next()).rejects.toThrow(
      "it wrote a message of more than 1000 levels",
    );
  });
});
