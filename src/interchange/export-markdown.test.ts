import fc from "fast-check";
import { Marked } from "marked";
import { describe, expect, test } from "vitest";
import { escapeMarkdown, fenceCode, inlineCode, quoteMarkdown } from "./export-markdown.ts";

const marks = fc.array(
  fc.constantFrom("`", "```", "~~~", "\n", " ", "<b>", "</details>", "|", "\\", "- ", "a", "> ", "#"),
  {
    maxLength: 25,
  },
);
const marked = fc.oneof(
  marks.map((parts) => parts.join("")),
  fc.string({ unit: "grapheme" }),
);

describe("fences", () => {
  test("no text inside a fence can end it", () => {
    fc.assert(
      fc.property(marked, (text) => {
        const lines = fenceCode(text, "json").split("\n");
        const fence = /^`{3,}/.exec(lines[0] ?? "")?.[0] ?? "";
        const ends = lines.flatMap((line, index) => {
          const run = /^ {0,3}(`+)[ \t]*$/.exec(line)?.[1] ?? "";
          return index > 0 && run.length >= fence.length ? [index] : [];
        });
        expect(ends).toEqual([lines.length - 3]);
        expect(lines.slice(1, -3).join("\n")).toBe(text.endsWith("\n") ? text.slice(0, -1) : text);
      }),
    );
  });

  test("inline code stays on its line", () => {
    fc.assert(
      fc.property(marked, (text) => {
        const shown = inlineCode(text);
        expect(shown).not.toContain("\n");
        const mark = /^`+/.exec(shown)?.[0] ?? "";
        const inside = shown.slice(mark.length, -mark.length);
        expect(Array.from(inside.matchAll(/`+/g), ([run]) => run)).not.toContain(mark);
      }),
    );
  });

  test("plain text has no markup", () => {
    expect(escapeMarkdown("# a *b* [c](d) <e> `f` & |\n# g")).toBe(
      "\\# a \\*b\\* \\[c\\](d) \\<e\\> \\`f\\` \\& \\| \\# g",
    );
  });
});

describe("quotations", () => {
  test("every line is part of the quotation", () => {
    fc.assert(
      fc.property(marked, (text) => {
        const lines = quoteMarkdown(text).split("\n");
        expect(lines.slice(-2)).toEqual(["", ""]);
        for (const line of lines.slice(0, -2)) expect(line).toMatch(/^>/);
        expect(lines.length - 2).toBe(text.split("\n").length);
      }),
    );
  });

  test.each([
    ["a tag", "a <b> c", "> a &lt;b> c"],
    ["a tag in code", "a `<b>` c", "> a `<b>` c"],
    ["a tag in code with backticks", "``a ` <b>``", "> ``a ` <b>``"],
    ["unterminated code", "a ` <b>", "> a ` &lt;b>"],
    ["code that may belong to the previous line", "a ` b\nc ` <b> ` d", "> a ` b\n> c ` &lt;b> ` d"],
    ["an escaped backtick", "\\` <b> `", "> \\` &lt;b> `"],
    ["a cell of a table", "`a | <b>`", "> `a | &lt;b>`"],
    ["a block of code", "```\n<b>\n```", "> ```\n> <b>\n> ```"],
    ["an unterminated block", "```\n<b>", "> ```\n> &lt;b>"],
    ["a block in a list", "- a\n\n  ```\n<b>\n  ```", "> - a\n>\n>   ```\n> &lt;b>\n>   ```"],
    [
      "a block with a longer fence inside",
      "````\n```\n<b>\n````\n<b>",
      "> ````\n> ```\n> <b>\n> ````\n> &lt;b>",
    ],
    [
      "an indented block before another block",
      "1. a\n   ```\n   <b>\n   ```\n```\n<b>\n```",
      "> 1. a\n>    ```\n>    &lt;b>\n>    ```\n> ```\n> <b>\n> ```",
    ],
    ["an indented block that another fence closes", " ```\n```\n<b>\n```", ">  ```\n> ```\n> &lt;b>\n> ```"],
    ["a block after backticks", "~~~ `x`\n~~~\n<b>\n~~~", "> ~~~ `x`\n> ~~~\n> &lt;b>\n> ~~~"],
    ["a tab before a fence", "\t```\n```\n<b>\n```", "> \t```\n> ```\n> &lt;b>\n> ```"],
    ["a tab after a fence", "```\n```\t\n```\n<b>\n```", "> ```\n> ```\t\n> ```\n> &lt;b>\n> ```"],
    ["another mark", "~~~\n```\n<b>\n~~~", "> ~~~\n> ```\n> <b>\n> ~~~"],
  ])("%s", (_, text, expected) => {
    expect(quoteMarkdown(text)).toBe(`${expected}\n\n`);
  });

  test("a Markdown renderer never finds a tag", () => {
    const start = fc.constantFrom(
      "",
      "",
      " ",
      "  ",
      "   ",
      "    ",
      "      ",
      "\t",
      "- ",
      "1. ",
      "-   ",
      "> ",
    );
    const rest = fc.constantFrom(
      "```",
      "````",
      "~~~",
      "``` ",
      "```\t",
      "~~~ `x`",
      "<b>",
      "`<b>`",
      "`",
      "a",
      "",
    );
    const line = fc.tuple(start, rest).map((parts) => parts.join(""));
    const renderer = new Marked();
    fc.assert(
      fc.property(fc.array(line, { maxLength: 7 }), (lines) => {
        expect(renderer.parse(quoteMarkdown(lines.join("\n")))).not.toContain("<b>");
      }),
      { numRuns: 1000 },
    );
  });
});
