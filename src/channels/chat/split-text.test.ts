import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { splitText } from "./split-text.ts";

describe("splitting an answer", () => {
  test.each([
    ["a short text stays whole", "  one two ", ["one two"]],
    ["at a blank line", `${"a".repeat(60)}\n\n${"b".repeat(60)}`, ["a".repeat(60), "b".repeat(60)]],
    ["at a line break", `${"a".repeat(60)}\n${"b".repeat(60)}`, ["a".repeat(60), "b".repeat(60)]],
    ["at a space", `${"a".repeat(60)} ${"b".repeat(60)}`, ["a".repeat(60), "b".repeat(60)]],
    ["anywhere, if there is no such place", "a".repeat(150), ["a".repeat(99), "a".repeat(51)]],
    [
      "inside a code block",
      `\`\`\`ts\n${"a".repeat(60)}\n${"b".repeat(60)}\n\`\`\``,
      [`\`\`\`ts\n${"a".repeat(60)}\n\`\`\``, `\`\`\`ts\n${"b".repeat(60)}\n\`\`\``],
    ],
  ])("%s", (_, text, parts) => {
    expect(splitText(text, 100)).toEqual(parts);
  });

  test.each([3, 40, 64, 65, 500])(
    "leaves room to close a code block whose fence has %i characters",
    (length) => {
      const mark = "`".repeat(length);
      const parts = splitText(`${mark}\n${"word ".repeat(300)}\n${mark}`, 400);
      for (const part of parts) expect(part.length).toBeLessThanOrEqual(400);
      if (length <= 64)
        for (const part of parts) expect(part.match(new RegExp(`^${mark}$`, "gm"))).toHaveLength(2);
    },
  );

  test("keeps every character of text without code blocks, and every part within the limit", () => {
    const word = fc
      .string({ unit: "binary", maxLength: 80 })
      .filter((text) => !/[`~]/.test(text) && text.isWellFormed());
    fc.assert(
      fc.property(fc.array(word), fc.constantFrom(" ", "\n", "\n\n", ""), (words, gap) => {
        const text = words.join(gap);
        const parts = splitText(text, 100);
        for (const part of parts) {
          expect(part.length).toBeLessThanOrEqual(100);
          expect(part.isWellFormed()).toBe(true);
        }
        expect(parts.join("").replaceAll(/\s/g, "")).toBe(text.replaceAll(/\s/g, ""));
      }),
    );
  });
});
