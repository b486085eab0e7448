import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatTimeIn, SafeStream, safeText } from "./format.ts";

describe("text that arrives in pieces", () => {
  test("[ATK18] is the same, and equally harmless, however it is split", () => {
    const piece = fc.string({
      unit: fc.constantFrom("a", "\r", "\n", "\u001b", "\u009b", "😀", "é", "\ud83d"),
    });
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const stream = new SafeStream();
        const shown = pieces.map((each) => stream.push(each)).join("") + stream.end();
        expect(shown).toBe(safeText(pieces.join("")));
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
        expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
      }),
    );
  });

  test("[ATK18] keeps lines with any line ending", () => {
    expect(safeText("one\r\ntwo\nthree\rfour")).toBe("one\ntwo\nthree\\u000dfour");
  });
});

test.each([
  ["Europe/Berlin", "2026-01-05 09:00 GMT+1"],
  ["UTC", "2026-01-05 08:00 UTC"],
  ["America/New_York", "2026-01-05 03:00 EST"],
  ["Asia/Kolkata", "2026-01-05 13:30 GMT+5:30"],
])("a time in %s is shown with its zone", (zone, shown) => {
  expect(formatTimeIn(Date.UTC(2026, 0, 5, 8), zone)).toBe(shown);
});
