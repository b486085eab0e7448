import { describe, expect, test } from "vitest";
import { rowName, taskOf } from "../../console/src/live/session-row.ts";
import { oneLine, plainText } from "../../console/src/ui/plain-text.ts";
import { previewLine, withoutMarkup } from "../../console/src/ui/preview.ts";

describe("plain text", () => {
  test("shows every invisible or direction-changing character as a symbol", () => {
    const codes = [
      0x00, 0x1b, 0x7f, 0x85, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180e, 0x200b, 0x2028, 0x202a,
      0x202e, 0x2060, 0x2064, 0x2066, 0x206a, 0x206f, 0x3164, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001,
      0xe0041, 0xe007f, 0xe0100,
    ];
    for (const code of codes) {
      const shown = plainText(`a${String.fromCodePoint(code)}b`);
      expect(shown).toMatch(/^a(?:[\u2400-\u2421]|⟨U\+[0-9A-F]{4,5}⟩)b$/);
    }
  });

  test("keeps joiners, marks and variants where a script or an emoji needs them", () => {
    for (const text of ["❤️‍🔥 👩🏽‍💻 1️⃣", "می‌خواهم", "क्‍ष", "שלום\u200f!", "tab\tand\nline", "ñ é 漢字"])
      expect(plainText(text)).toBe(text);
  });

  test("shows joiners, marks and variants that only make two texts look the same", () => {
    expect(plainText("ad\u200cm\u200di\u200en")).toBe("ad⟨U+200C⟩m⟨U+200D⟩i⟨U+200E⟩n");
    expect(plainText(`a${"\u0301".repeat(16)}b${"\u0301\u0302".repeat(1000)} c`)).toBe(
      `a${"\u0301".repeat(16)}b${"\u0301\u0302".repeat(8)}⟨1,984 more marks⟩ c`,
    );
    expect(plainText("a\ufe0f ✔\ufe0f\ufe0f")).toBe("a⟨U+FE0F⟩ ✔\ufe0f⟨U+FE0F⟩");
  });
});

describe("a text on one line", () => {
  test("ends with a whole word, or with a whole character where there are no spaces", () => {
    expect(oneLine("begin with what everyone notices, and end", 34)).toBe(
      "begin with what everyone notices…",
    );
    expect(oneLine("begin with what everyone notices", 30)).toBe("begin with what everyone…");
    expect(oneLine("短い\n文", 10)).toBe("短い 文");
    expect(oneLine("x".repeat(50), 10)).toBe(`${"x".repeat(9)}…`);
    expect(oneLine("👩🏽‍💻".repeat(9), 16)).toBe("👩🏽‍💻👩🏽‍💻…");
    expect(oneLine("e\u0301".repeat(9), 6)).toBe("e\u0301e\u0301…");
  });
});

describe("a preview", () => {
  test("has no marks of Markdown", () => {
    expect(previewLine("# Head\n\n**bold** and `code` in [a link](https://a.example)")).toBe(
      "Head bold and code in a link",
    );
    expect(previewLine("- [x] one\n- two\n\n> quoted\n\n|a|b|\n|-|-|\n|1|2|")).toBe("one two quoted a b 1 2");
    expect(previewLine("```js\nlet a = 1 * 2 * 3;\n```")).toBe("let a = 1 * 2 * 3;");
    expect(previewLine("<b>5 &lt; 6</b>")).toBe("<b>5 < 6</b>");
  });

  test("leaves out a mark whose partner was cut off, and keeps other signs", () => {
    expect(withoutMarkup("**What the front desk of a small")).toBe("What the front desk of a small");
    expect(withoutMarkup("see `src/app.ts and")).toBe("see src/app.ts and");
    expect(withoutMarkup("2 * 3 ** 4, snake_case_name, #4")).toBe("2 * 3 ** 4, snake_case_name, #4");
    expect(previewLine(`**${"word ".repeat(100)}**`, 20)).toBe("word word word word…");
    expect(previewLine("not instructions. ``` I need")).toBe("not instructions. I need");
  });

  test.each([
    ["~~~ wipe the whole disk", "wipe the whole disk"],
    ["```js let a = 1; let b = 2;", "js let a = 1; let b = 2;"],
    ["[note]: wipe-the-disk", "[note]: wipe-the-disk"],
    ["[](https://a.example)", "[](https://a.example)"],
    ["---", "---"],
    ["~~~", "~~~"],
    ["- [x]", "[x]"],
    ["|a|\n|-|\n|1|2|", "a 1 |2"],
    [" \n", ""],
  ])("of %j is not empty unless the text is", (text, preview) => {
    expect(previewLine(text)).toBe(preview);
    expect(previewLine(`${" \n".repeat(2000)}${text}`)).toBe(preview);
  });

  test("keeps the underscores of names", () => {
    for (const name of ["session_search", "__dirname", "__init__", "_search"])
      expect(withoutMarkup(`The tool \`${name}\` failed, ${name}2 too`)).toBe(
        `The tool ${name} failed, ${name}2 too`,
      );
  });
});

describe("the name of a session", () => {
  const key = "agent:main:note-1";

  test.each([" ", "\u00a0", "\u2800", "\ufffc", "\u2028", "\u2800 \ufffc"])(
    "is the key if the given name %j is blank",
    (blank) => {
      expect(rowName({ key, displayName: blank })).toBe("main:note-1");
      expect(rowName({ key, label: blank, displayName: "Rooms" })).toBe("Rooms");
      expect(taskOf({ label: blank, displayName: "Rooms" })).toBe("");
      expect(taskOf({ label: "helper-1", displayName: blank })).toBe("");
    },
  );
});
