import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyEntry, draft } from "../../test/support/arbitraries.ts";
import { sessionText, userLine } from "../../test/support/session-text.ts";
import { parseSession } from "../core/parse-session.ts";
import type { EntryDraft } from "../core/seal.ts";
import { SessionTree } from "../core/tree.ts";
import { exportHtml } from "./export-html.ts";
import { exportJsonl } from "./export-jsonl.ts";
import { exportMarkdown } from "./export-markdown.ts";
import { isShown, listBranches } from "./export-view.ts";
import { dark, light, style } from "./html-style.ts";

const open = (text: string) => SessionTree.from(parseSession(text));
const textOf = (chunks: Iterable<string>) => [...chunks].join("");

/** A session built from drafts, which sometimes branches from another entry. */
const grown = fc
  .array(fc.tuple(draft, fc.option(fc.nat(), { nil: null })), { maxLength: 12 })
  .map((steps) => {
    let count = 0;
    const tree = SessionTree.create(
      { cwd: "/w", id: "s" },
      { newId: () => `e${++count}`, clock: { now: () => 1_770_000_000_000 + count } },
    );
    for (const [each, back] of steps) {
      if (back !== null && tree.size > 0) tree.branch(`e${(back % tree.size) + 1}`);
      tree.append(each as unknown as EntryDraft);
    }
    return tree;
  });

describe("JSONL", () => {
  test("[INT10] an exported session reads back as the same tree", () => {
    fc.assert(
      fc.property(grown, (tree) => {
        const again = open(textOf(exportJsonl(tree)));
        expect(again.diagnostics).toEqual([]);
        expect(again.header).toEqual(tree.header);
        expect([...again.entries()]).toEqual([...tree.entries()]);
        expect([again.tipId, again.leafId, again.name]).toEqual([tree.tipId, tree.leafId, tree.name]);
        expect(again.context()).toEqual(tree.context());
      }),
    );
  });

  test("[INT10] odd sessions of other programs read back as the same tree", () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 8 }), (entries) => {
        const tree = open(sessionText(...entries));
        const again = open(textOf(exportJsonl(tree)));
        const places = (of: SessionTree) => Array.from(of.entries(), ({ id }) => [id, of.parentOf(id)?.id]);
        expect(places(again)).toEqual(places(tree));
        expect([again.tipId, again.leafId, again.name]).toEqual([tree.tipId, tree.leafId, tree.name]);
        expect(again.context().messages).toEqual(tree.context().messages);
      }),
    );
  });

  test("[INT10] blobs are inlined, and lost ones stay references", () => {
    const block = (sha256: string, was: string) => ({
      type: "text",
      text: `[${sha256}]`,
      skein: { blob: { sha256, bytes: 2, mimeType: "image/png", was } },
    });
    const content = [block("aa", "image"), block("bb", "text"), block("cc", "image")];
    const place = { parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
    const tree = open(
      sessionText(
        { type: "message", id: "a", ...place, message: { role: "user", content } },
        { type: "custom_message", id: "b", ...place, customType: "x", content },
        { type: "context_edit", id: "c", ...place, targetId: "a", replacement: { content } },
        { type: "message", id: "d", ...place, message: { role: "user", content: 'says "blob"' } },
      ),
    );
    const blobs: Record<string, string> = { aa: "hi", bb: "the whole text" };
    const blobOf = (sha256: string) => (blobs[sha256] === undefined ? null : Buffer.from(blobs[sha256]));
    const inlined = [
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "text", text: "the whole text" },
      content[2],
    ];
    const [a, b, c, d] = [...open(textOf(exportJsonl(tree, blobOf))).entries()];
    expect(a).toMatchObject({ message: { content: inlined } });
    expect(b).toMatchObject({ content: inlined });
    expect(c).toMatchObject({ replacement: { content: inlined } });
    expect(d).toEqual(tree.entry("d"));
    expect(tree.entry("a")).toMatchObject({ message: { content } });
  });
});

describe("branches", () => {
  test("[INT12] every displayed entry is in one branch, the active one first", () => {
    fc.assert(
      fc.property(grown, (tree) => {
        const { list, startingAt } = listBranches(tree);
        const ids = list.flatMap(({ entries }) => entries.filter(isShown).map(({ id }) => id));
        const all = [...tree.entries()].filter(isShown).map(({ id }) => id);
        expect(ids.toSorted()).toEqual(all.toSorted());
        expect(list[0]?.entries).toEqual(tree.path());
        const numbers = [...startingAt.values()].flat().toSorted((a, b) => a - b);
        expect(numbers).toEqual(list.slice(1).map(({ number }) => number));
      }),
    );
  });

  test("[INT12] of several continuations, the latest is followed", () => {
    const tree = open(
      sessionText(
        userLine("a", null),
        userLine("b", "a"),
        userLine("c", "a"),
        userLine("d", "c"),
        userLine("e", "c"),
        {
          type: "custom",
          customType: "skein.leaf",
          id: "l",
          parentId: "b",
          timestamp: "2026-01-01T00:00:00.000Z",
        },
      ),
    );
    const { list, startingAt } = listBranches(tree);
    expect(list.map(({ entries }) => entries.map(({ id }) => id))).toEqual([
      ["a", "b", "l"],
      ["c", "e"],
      ["d"],
    ]);
    expect([...startingAt]).toEqual([
      ["a", [2]],
      ["c", [3]],
    ]);
  });
});

/** Counts a page's tags. Throws on a tag that the export never writes, or that is not closed where it was opened. */
function checkTags(page: string): Record<string, number> {
  const body = page.replace(/<style>[^<]*<\/style>/, "");
  const counts: Record<string, number> = {};
  const openTags: string[] = [];
  const attribute =
    '(?: (?:class|id|href|dir|lang|datetime|aria-label|aria-labelledby|alt|src|charset|http-equiv|content|name)="[^"<>]*")*';
  const tag = new RegExp(`<(/?)([a-z][a-z0-9]*)${attribute}>|<!doctype html>|[<>]`, "g");
  for (const [found, close, name] of body.matchAll(tag)) {
    if (found === "<!doctype html>") continue;
    if (name === undefined) throw new Error(`a loose ${found}`);
    if (close === "/" && openTags.pop() !== name) throw new Error(`</${name}> ends something else`);
    if (close === "/" || name === "meta" || name === "img") continue;
    openTags.push(name);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  if (openTags.length > 0) throw new Error(`${openTags} not closed`);
  return counts;
}

const ours = new Set(
  "html head title body a header h1 h2 h3 dl dt dd nav ol li main section p article div span time pre code details summary b strong footer".split(
    " ",
  ),
);

describe("HTML", () => {
  test("[INT12] for any content, all tags are ours and properly nested", () => {
    fc.assert(
      fc.property(fc.array(anyEntry, { maxLength: 6 }), (entries) => {
        const page = textOf(exportHtml(open(sessionText(...entries))));
        for (const name of Object.keys(checkTags(page))) expect(ours).toContain(name);
      }),
    );
  });

  const hostile = fc.constantFrom(
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</pre></details></article></main></body></html>",
    "<!--",
    "]]>",
    "&lt;b&gt;&#60;b>",
    "' onclick='x",
    "`<b>` **<i>** ```\n<u>",
    "\u0000\u2028</style>",
  );

  test("[INT12] strings that try to break out stay text, everywhere", () => {
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 12, maxLength: 12 }), (words) => {
        let next = 0;
        const word = () => words[next++ % words.length] as string;
        const place = { timestamp: word() };
        const tree = open(
          sessionText(
            { type: "session_info", id: "n", parentId: null, ...place, name: word() },
            {
              type: "message",
              id: word() || "u",
              parentId: null,
              ...place,
              message: { role: "user", content: word() },
            },
            { type: "model_change", id: "m", parentId: null, ...place, provider: word(), modelId: word() },
            { type: "label", id: "l", parentId: "m", ...place, targetId: "m", label: word() },
            {
              type: "message",
              id: "a",
              parentId: "m",
              ...place,
              message: {
                role: "assistant",
                model: word(),
                stopReason: "error",
                errorMessage: word(),
                content: [
                  { type: "thinking", thinking: word() },
                  { type: "toolCall", id: word(), name: word(), arguments: { [word()]: word() } },
                  { type: word(), x: word() },
                ],
              },
            },
            {
              type: "message",
              id: "r",
              parentId: "a",
              ...place,
              message: {
                role: "toolResult",
                toolCallId: "t",
                toolName: word(),
                content: [
                  { type: "image", data: word(), mimeType: word() },
                  { type: "text", text: word() },
                ],
              },
            },
            { type: "custom_message", id: "c", parentId: "r", ...place, customType: word(), content: word() },
            { type: "compaction", id: "k", parentId: "c", ...place, summary: word() },
            { type: word(), id: "o", parentId: "k", ...place },
          ),
        );
        const page = textOf(exportHtml(tree));
        for (const name of Object.keys(checkTags(page))) expect(ours).toContain(name);
        expect(page).not.toMatch(/<script|<img|<!--/);
      }),
    );
  });

  test("[INT12] nothing is fetched or executed", () => {
    const page = textOf(exportHtml(open(sessionText(userLine("a", null)))));
    expect(page).toContain(
      `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">`,
    );
    expect(page.indexOf("Content-Security-Policy")).toBeLessThan(page.indexOf("<style>"));
    expect(page).not.toMatch(/https?:|url\(|@import|<script|<link|javascript:/);
  });

  test("[INT12] every branch has a heading, a link to it, and a link from where it leaves", () => {
    const tree = open(
      sessionText(userLine("a", null), userLine("b", "a"), userLine("c", "a"), userLine("d", null)),
    );
    const page = textOf(exportHtml(tree));
    for (const number of [1, 2, 3]) {
      expect(page).toContain(`<h2 id="b${number}">`);
      expect(page).toContain(`href="#b${number}"`);
    }
    const anchors = [...page.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]);
    expect(new Set(anchors).size).toBe(anchors.length);
    for (const [, target] of page.matchAll(/href="#([^"]+)"/g)) expect(anchors).toContain(target);
  });

  test("has landmarks, one title, and headings in order", () => {
    const tree = open(sessionText(userLine("a", null), userLine("b", "a"), userLine("c", "b")));
    const page = textOf(exportHtml(tree));
    const counts = checkTags(page);
    expect(counts).toMatchObject({ header: 1, nav: 1, main: 1, footer: 1, h1: 1, title: 1, h3: 3 });
    const levels = [...page.matchAll(/<h([1-6])/g)].map((match) => Number(match[1]));
    for (const [index, level] of levels.entries()) expect(level - (levels[index - 1] ?? 0)).toBeLessThan(2);
    expect(page).toContain('<html lang="en">');
    expect(page).toContain('<a class="skip" href="#main">');
  });

  test.each([
    ["light", light],
    ["dark", dark],
  ])("every text color is readable on every background, %s", (_, palette) => {
    for (const ground of [palette.page, palette.card, palette.code, palette.user]) {
      for (const ink of [palette.text, palette.soft, palette.accent, palette.bad]) {
        expect(contrast(ink, ground)).toBeGreaterThanOrEqual(4.5);
      }
    }
  });

  test("colors come only from the palettes, and print has a white background", () => {
    const outside = style.replaceAll(/--\w+: #[0-9a-f]{6};/g, "");
    expect(outside).not.toMatch(/#[0-9a-f]{3,6}|rgb|hsl/);
    expect(style).toMatch(/@media print \{\n {2}:root \{ --page: #ffffff;/);
  });
});

/** As defined by WCAG 2. */
function contrast(a: string, b: string): number {
  const luminance = (color: string) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((from) => {
      const part = Number.parseInt(color.slice(from, from + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [high = 0, low = 0] = [luminance(a), luminance(b)].toSorted((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

test("no chunk grows with the session", () => {
  const tree = open(
    sessionText(
      ...Array.from({ length: 5000 }, (_, index) =>
        userLine(`e${index}`, index === 0 ? null : `e${index - 1}`),
      ),
    ),
  );
  for (const chunks of [
    exportJsonl(tree),
    exportMarkdown(tree, undefined, { branches: "all" }),
    exportHtml(tree),
  ]) {
    let longest = 0;
    for (const chunk of chunks) longest = Math.max(longest, chunk.length);
    expect(longest).toBeLessThan(10_000);
  }
});
