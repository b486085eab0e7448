import type { Token, Tokens } from "marked";
import { Lexer, Tokenizer } from "marked";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  findLinkTargets,
  foldPieces,
  hiddenHost,
  parsePiece,
  shownText,
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
  "wide tables": `${"|a".repeat(100)}|\n${"|-".repeat(100)}|\n${`${"|b".repeat(100)}|\n`.repeat(600)}\n`,
  "tables with short rows": `${"|a".repeat(100)}|\n${"|-".repeat(100)}|\n${"b\n".repeat(600)}\n`,
  "very wide tables": `${"|a".repeat(1500)}|\n${"|-".repeat(1500)}|\n${"|b\n".repeat(600)}\n`,
  "quoted tables": `> ${"|a".repeat(90)}|\n> ${"|-".repeat(90)}|\n${"> |b\n".repeat(600)}\n`,
  "short emphasis": `${"*a* ".repeat(90)}\n\n`,
  "nested items": `${"1. ".repeat(9)}a\n\n`,
  rules: "---\n",
  fences: "```\n",
  "lines with hard breaks": "a  \n",
  paragraphs: "a\n\n",
};

/** Counts the elements that the page mounts. */
function countElements(tokens: readonly Token[]): number {
  return tokens.reduce((sum, token) => {
    const { items = [], tokens: inside = [] } = token as Partial<Tokens.List & Tokens.Paragraph>;
    const { header = [], rows = [] } = token as Partial<Tokens.Table>;
    const cells = [...header, ...rows.flat()];
    const own = ["text", "escape", "space"].includes(token.type) ? 0 : 1 + rows.length;
    return (
      sum + own + cells.length + countElements([...items, ...inside, ...cells.flatMap((cell) => cell.tokens)])
    );
  }, 0);
}

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
      // The head of a table is repeated in each of its pieces.
      const tableHead = withoutSpace(/^.*\n[> ]*\|-.*\n/.exec(part)?.[0] ?? "\n");
      const plain = (given: string) => withoutSpace(given).replaceAll(tableHead, "");
      expect(plain(pieces.map((piece) => piece.text).join(""))).toBe(plain(text));
      const { head, tail } = foldPieces(pieces, 0);
      const shown = [...head, ...tail].filter(({ code }) => code === null);
      const elements = shown.reduce((sum, piece) => sum + countElements(parsePiece(piece.text, {}) ?? []), 0);
      expect(elements).toBeLessThanOrEqual(4500);
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

  test("name the host of a link whose text is an address of another host", () => {
    const hostOf = (text: string) => {
      const [paragraph] = parsePiece(text, {}) as readonly [Tokens.Paragraph];
      const { href, tokens } = paragraph.tokens[0] as Tokens.Link;
      return hiddenHost(href, shownText(tokens));
    };
    for (const text of [
      "[https://bank.example](https://evil.example/a)",
      "[see **www.bank.example**/help](https://evil.example)",
      "[https:\\//bank.example](https://bank.example@evil.example)",
      "https://bank.example@evil.example/",
      "![https://bank.example](https://evil.example)",
    ])
      expect(hostOf(text)).toBe("evil.example");
    expect(hostOf("[https://bank.example](mailto:a@evil.example)")).toBe("mailto:a@evil.example");
    for (const text of [
      "[the docs](https://a.example)",
      "[README.md](https://a.example)",
      "[https://a.example/x](https://www.a.example/y)",
      "[HTTPS://Bücher.example:80](https://xn--bcher-kva.example)",
      "https://a.example/b?c=d@e",
      "www.a.example",
    ])
      expect(hostOf(text)).toBe(null);
  });

  test("know the targets of links that are defined in another piece", () => {
    const text = "[Docs][The  docs], [b]\n\n[the docs]: https://a.example\n[the docs]: https://b.example";
    const [piece = ""] = texts(text);
    const targets = targetsOf(piece, findLinkTargets(text));
    expect(targets).toEqual({ "the docs": "https://a.example" });
    expect(JSON.stringify(parsePiece(piece, targets))).toContain('"href":"https://a.example"');
  });
});
