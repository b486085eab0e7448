import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findSiteProblems } from "../../scripts/docs/check-site.ts";
import { writeCliReference } from "../../scripts/docs/cli-reference.ts";
import { headingsOf, joinInlineCode, linksOf, slugOf } from "../../scripts/docs/markdown.ts";
import { writeSettingsReference } from "../../scripts/docs/settings-reference.ts";
import { collectDrawingStyles, writePages } from "../../scripts/docs/write-pages.ts";
import type { TemporaryFolder } from "../../src/testing/support/temporary-folder.ts";
import { temporaryFolder } from "../../src/testing/support/temporary-folder.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

function build(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder.path, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}

const site = {
  "index.html":
    '<link href="/docs/a.css"><h1 id="top">A</h1><a href="/docs/api/x#one">x</a><a href="#top">top</a>',
  "api/x.html": '<h2 id="one">X</h2><a href="../">up</a><a href="https://example.org">elsewhere</a>',
  "a.css": "a { color: red }",
  "assets/localSearchIndex_root.1.js": "sessions_spawn",
};
const problemsOf = (files: Readonly<Record<string, string>>) => {
  build(files);
  return findSiteProblems(folder.path, "/docs/", "sessions_spawn");
};

describe("the check of the built site", () => {
  test("accepts a site whose links lead somewhere", () => {
    expect(problemsOf(site)).toEqual([]);
  });

  test.each([
    ["a link to a page that does not exist", { "b.html": '<a href="/docs/nowhere">x</a>' }, "leads nowhere"],
    ["a link outside the base", { "b.html": '<a href="/api/x">x</a>' }, "leads nowhere"],
    [
      "a link to a heading that does not exist",
      { "b.html": '<a href="/docs/api/x#two">x</a>' },
      "not a heading",
    ],
    ["an image that does not exist", { "b.html": '<img alt="" src="/docs/x.png">' }, "leads nowhere"],
    ["a script of another host", { "b.html": '<script src="https://example.org/a.js">' }, "b.html loads"],
    ["a font of another host", { "b.css": "a { src: url(//example.org/a.woff2) }" }, "b.css loads"],
    ["a search without the term", { "assets/localSearchIndex_root.1.js": "nothing" }, "search index"],
  ])("finds %s", (_, broken, problem) => {
    expect(problemsOf({ ...site, ...broken })).toEqual([expect.stringContaining(problem)]);
  });
});

describe("Markdown", () => {
  test("headings have the IDs that GitHub gives them", () => {
    expect(slugOf("Two `agents`, one chat!")).toBe("two-agents-one-chat");
    const page = "# A b\n## `x_y`\n```sh\n# no heading\n```\n## A b\n";
    expect(headingsOf(page).map(({ id }) => id)).toEqual(["a-b", "x_y", "a-b-1"]);
  });

  test("links in code are no links, and links whose text is code are", () => {
    const page = "`[a](a.md)` [b](b.md) [`c`](c.md)\n```\n[d](d.md)\n```\n![e](e.png)";
    expect(linksOf(page).map(({ target }) => target)).toEqual(["b.md", "c.md", "e.png"]);
  });

  test("inline code that is broken over two lines is joined", () => {
    expect(joinInlineCode("run `skein\n<ref>`. For more, see\n\n`a`")).toBe(
      "run `skein <ref>`.\nFor more, see\n\n`a`",
    );
    expect(joinInlineCode("```\nskein `x\n<ref>\n```")).toBe("```\nskein `x\n<ref>\n```");
  });
});

describe("the pages of the site", () => {
  const readSite = (path: string) => readFileSync(join(folder.path, path), "utf8");

  test("link to each other, and show errors with their message and their cause", () => {
    writePages(folder.path);
    expect(readSite("index.md")).toContain("](/sessions.md)");
    expect(readSite("tutorial.md")).toContain("](/troubleshooting.md)");
    expect(readSite("errors.md")).toContain("| [`locked`](/troubleshooting.md#locked) | 423 |");
    expect(readSite("troubleshooting.md")).toMatch(
      /### `locked`\n\n> \{file\} is held by .*\n\nHTTP status 423\.\n\n+Another process/,
    );
    expect(readSite("contents.md")).not.toMatch(/\]\(\.\.?\//);
  });

  test("contain drawings whose styles are in the theme", () => {
    writePages(folder.path);
    const page = readSite("concepts.md");
    expect(page).toContain('<figure class="drawing"><svg');
    expect(page).not.toContain("<style>");
    expect(collectDrawingStyles()).toMatch(/^\.drawing \{[\s\S]*light-dark\(/);
  });

  test("include every option of a command, and the values of a setting", async () => {
    const commands = await writeCliReference();
    expect(commands).toMatch(/## skein sessions ls\n[\s\S]*`--active <minutes>`/);
    expect(commands).toContain("## skein runs retry");
    expect(writeSettingsReference()).toContain("| `gateway.port` | whole number from 0 to 65535 | `18790` |");
  });
});
