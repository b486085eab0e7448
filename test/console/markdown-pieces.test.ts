import { Lexer, Tokenizer } from "marked";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  findLinkTargets,
  foldPieces,
  parsePiece,
  splitMarkdown,
  targetsOf,
} from "../../console/src/ui/markdown-pieces.ts";

afterEach(() => void vi.restoreAllMocks());

const texts = (text: string) => splitMarkdown(text).map((piece) => piece.text);
const withoutSpace = (text: string) => text.replace(/\s+/g, "");

/** Parsing any of these as a whole takes quadratic time or worse. */
const hostile = {
  addresses: `${"a.".repeat(200)}@\n\n`,
  "one long address": "a.",
  "words before addresses": `${"a.".repeat(50)}@ `,
  "task lists": "- [ ] a\n",
  lists: "- a\n",
  "loose lists": "1. a\n\n",
  "lists of two kinds": "+ a\n* b\n",
  quotes: `${"> ".repeat(29)}a\n`,
  "quotes on one line": "> ",
  brackets: "[a ",
  "open links": "[a](",
  images: "![",
  stars: "a*",
  underscores: "_a ",
  tildes: "~a~~b",
  backticks: "`a``b",
  tags: "<a ",
  "open definitions": "[a]: b '\n",
  "tables without a head": "|a|b|\n",
  "cells on one line": "-|",
  rules: "---\n",
  fences: "```\n",
  "lines with hard breaks": "a  \n",
  paragraphs: "a\n\n",
};

describe("the pieces of a Markdown text", () => {
  test.each(Object.entries(hostile))("bound the work for %s, and have the whole text", (_, part) => {
    for (const length of [10_000, 100_000]) {
      const text = part.repeat(Math.ceil(length / part.length));
      const sources: number[] = [];
      for (const method of ["blockTokens", "inlineTokens"] as const) {
        const original = Lexer.prototype[method] as (source: string, ...rest: unknown[]) => never;
        vi.spyOn(Lexer.prototype, method).mockImplementation(function (this: Lexer, source, ...rest) {
          sources.push(source.length);
          return original.call(this, source, ...rest);
        });
      }
      const plainSteps = vi.spyOn(Tokenizer.prototype, "inlineText");
      const pieces = splitMarkdown(text);
      expect(withoutSpace(pieces.map((piece) => piece.text).join(""))).toBe(withoutSpace(text));
      const { head, tail } = foldPieces(pieces, 0);
      const shown = [...head, ...tail].filter(({ code }) => code === null);
      for (const piece of shown) parsePiece(piece.text, {});
      // Counted once as blocks and once as words. Nested text is counted again for each of up to 30 levels.
      expect(sources.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(32 * text.length);
      expect(Math.max(0, ...sources)).toBeLessThanOrEqual(20_000);
      expect(shown.length).toBeLessThanOrEqual(4000);
      if (part.includes("@")) expect(plainSteps.mock.calls.length).toBeLessThanOrEqual(shown.length);
      vi.restoreAllMocks();
    }
  });

  test("stay the same while a text grows, except the last one", () => {
    const text = `# Title\n\nA paragraph.\n\n- one\n\n- two\n\n  more of it\n\n\`\`\`js\nlet a;\n\nlet b;\n\`\`\`\nThe end.\n${"- item\n".repeat(250)}`;
    for (let length = 1; length < text.length; length += 1) {
      const before = splitMarkdown(text.slice(0, length));
      const now = splitMarkdown(text.slice(0, length + 1));
      expect(now.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
    }
  });

  test("keep lists and code whole", () => {
    expect(texts("1. a\n\n2. b\n\n   c\n\nd\ne\n\nf")).toEqual(["1. a\n\n2. b\n\n   c", "d\ne", "f"]);
    const [before, code, after] = splitMarkdown("x\n```ts a\n# no head\n\n  in\n```\ny");
    expect([before?.text, after?.text]).toEqual(["x", "y"]);
    expect(code?.code).toEqual({ language: "ts a", text: "# no head\n\n  in", isClosed: true });
    const [item, open] = splitMarkdown("- a\n  ```\n  b\n\n  c\n  ```\n~~~\nd");
    expect(item?.text).toBe("- a\n  ```\n  b\n\n  c\n  ```");
    expect(open?.code).toEqual({ language: "", text: "d", isClosed: false });
  });

  test("repeat the head of a table that is too long for one piece", () => {
    const head = "|a|b|\n|-|-|\n";
    const pieces = texts(`${head}${"|1|2|\n".repeat(450)}`);
    expect(pieces.length).toBe(3);
    for (const piece of pieces) expect(parsePiece(piece, {})?.map(({ type }) => type)).toEqual(["table"]);
  });

  test("show a long text from both ends, and more of it with each step", () => {
    const pieces = splitMarkdown(
      Array.from({ length: 9000 }, (_, line) => `line ${line + 1000}`).join("\n\n"),
    );
    const { head, hidden, tail } = foldPieces(pieces, 0);
    expect([head[0]?.text, tail.at(-1)?.text]).toEqual(["line 1000", "line 9999"]);
    expect(hidden).toMatch(/^[\d,]+ lines$/);
    expect(foldPieces(pieces, 1).head.length).toBeGreaterThan(head.length * 1.9);
    expect(foldPieces(pieces, 100)).toEqual({ head: pieces, hidden: null, tail: [] });
  });

  test("know the targets of links that are defined in another piece", () => {
    const text = "[Docs][The  docs], [b]\n\n[the docs]: https://a.example\n[the docs]: https://b.example";
    const [piece = ""] = texts(text);
    const targets = targetsOf(piece, findLinkTargets(text));
    expect(targets).toEqual({ "the docs": "https://a.example" });
    expect(JSON.stringify(parsePiece(piece, targets))).toContain('"href":"https://a.example"');
  });
});
