import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseJsonInSteps } from "./parse-json.ts";
import { atOnce } from "./slices.ts";

const outcome = (parse: () => unknown) => {
  try {
    return { value: parse() };
  } catch (error) {
    return { isSyntaxError: error instanceof SyntaxError };
  }
};
const same = (text: string) =>
  expect(outcome(() => atOnce(parseJsonInSteps(text)))).toEqual(outcome(() => JSON.parse(text)));

describe("parsing JSON in steps", () => {
  test("gives the same value as JSON.parse", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), (value, space) => {
        same(JSON.stringify(value, null, space));
      }),
    );
  });

  test("refuses what JSON.parse refuses", () => {
    const character = fc.constantFrom(...'{}[]",:\\u0eE+-.1 \n\ttrunfalse\u0001');
    fc.assert(
      fc.property(fc.array(character, { maxLength: 12 }), (characters) => {
        same(characters.join(""));
      }),
    );
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), character, (value, at, other) => {
        const text = JSON.stringify(value);
        const place = at % (text.length + 1);
        same(text.slice(0, place) + other + text.slice(place + 1));
        same(text.slice(0, place));
      }),
    );
  });

  test.each([
    '{"__proto__":{"a":1},"a":1,"a":2}',
    "[1,]",
    '{"a":1,}',
    "[,]",
    '{"a"}',
    "1 2",
    "",
    " ",
    "-",
    "01",
    "1e400",
    '"\u0001"',
    '"\\ud83d\\ude00"',
  ])("%s", same);

  test("splits a long string at any position of its escapes", () => {
    for (const written of ["\\n", "\\\\", '\\"', "\\u00e9", "\\ud83d\\ude00"])
      for (let shift = 0; shift < 14; shift++) {
        const text = `"${"x".repeat(64 * 1024 - 8 + shift)}${written.repeat(9)}${"y".repeat(70_000)}"`;
        same(text);
      }
    same(`"${"x".repeat(100_000)}\\`);
  });

  test("pauses at least every 64 KB of text", () => {
    const text = JSON.stringify({
      text: "x".repeat(1_000_000),
      escaped: '"\\'.repeat(500_000),
      list: Array.from({ length: 50_000 }, (_, i) => i),
    });
    const steps = [...parseJsonInSteps(text)];
    expect(Math.max(...steps)).toBeLessThanOrEqual(64 * 1024 + 16 * 1024);
    expect(steps.length).toBeGreaterThan(20);
  });
});
