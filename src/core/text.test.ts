import { describe, expect, test } from "vitest";
import { cutText, endOfText, shortenText } from "./text.ts";

describe("a text that is cut", () => {
  test("keeps characters of two code units whole", () => {
    expect(cutText("ab😀", 3)).toBe("ab");
    expect(cutText("ab😀", 4)).toBe("ab😀");
    expect(endOfText("😀ab", 3)).toBe("ab");
  });
});

describe("a text that is shortened", () => {
  test("stays as it is if it is short enough", () => {
    expect(shortenText("one two", 7)).toBe("one two");
  });

  test("ends with a whole word where there is a space near the end", () => {
    expect(shortenText("begin with what everyone notices", 30)).toBe("begin with what everyone…");
    expect(shortenText("one two three", 8)).toBe("one two…");
  });

  test("is cut within a long word, at a whole character", () => {
    expect(shortenText(`a ${"x".repeat(20)}`, 10)).toBe(`a ${"x".repeat(7)}…`);
    expect(shortenText("😀".repeat(10), 5)).toBe("😀😀…");
  });
});
