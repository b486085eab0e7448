import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeCliReference } from "../../scripts/docs/cli-reference.ts";
import { headingsOf, mapProse } from "../../scripts/docs/markdown.ts";
import { collectPages, contentsPage, findBrokenLinks, readSideBar } from "../../scripts/docs/pages.ts";
import { writeSettingsReference } from "../../scripts/docs/settings-reference.ts";
import { root } from "./source.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = collectPages();
const commands = headingsOf(await writeCliReference())
  .filter(({ level }) => level === 2)
  .map(({ text }) => text);

/** The commands that a page shows in a shell block or as inline code. */
function shownCommands(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh)?\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  const lines = blocks.flatMap((code) => code.split("\n"));
  const inline: string[] = [];
  mapProse(text, (line) => {
    inline.push(...[...line.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code));
    return line;
  });
  return [...lines, ...inline].flatMap((line) => {
    const [, words = ""] = /^(?:npm run -s skein -- |(?:npx )?skein )([a-z][a-z -]*)/.exec(line) ?? [];
    return words === "" ? [] : [words.trim()];
  });
}

/** Whether the words begin with a command, and with one of its subcommands if it has any. */
function isCommand(words: string): boolean {
  const [name = "", below = ""] = words.split(/ +/);
  const children = commands.filter((each) => each.startsWith(`skein ${name} `));
  const isGroup = children.length > 0 && below !== "" && !below.startsWith("-");
  return commands.includes(`skein ${name}`) && (!isGroup || children.includes(`skein ${name} ${below}`));
}

describe("the pages of the documentation", () => {
  test("[DOC1] every link leads to a page and a heading", () => {
    expect(findBrokenLinks(pages)).toEqual([]);
    expect(pages.map(({ path }) => path)).toEqual(expect.arrayContaining(["index", "glossary", "tutorial"]));
  });

  test.each([
    ["a missing page", "[x](nowhere.md)", "nowhere.md: no such file"],
    ["a missing heading", "[x](runs.md#nowhere)", "runs.md#nowhere: no such heading"],
    ["a missing heading of the page", "# A\n\n[x](#b)", "#b: no such heading"],
    ["a missing image", "![x](images/nowhere.png)", "images/nowhere.png: no such file"],
    ["a link in a table whose text is code", "| [`x`](nowhere.md) |", "nowhere.md: no such file"],
  ])("[DOC1] %s is found", (_, text, problem) => {
    expect(findBrokenLinks([{ source: "docs/a.md", text }])).toEqual([expect.stringContaining(problem)]);
    expect(findBrokenLinks([{ source: "docs/a.md", text: `\`\`\`\n${text}\n\`\`\`` }])).toEqual([]);
  });

  test("are all in the list, once", () => {
    const links = readSideBar().flatMap(({ items }) => items.map(({ link }) => link));
    expect(links).toEqual([...new Set(links)]);
    const files = globSync("docs/*.md", { cwd: root }).filter((path) => path !== contentsPage);
    const listed = [...read(contentsPage).matchAll(/^\| \[[^\]]+\]\(([\w-]+\.md)\)/gm)].map(
      ([, name]) => `docs/${name}`,
    );
    expect(new Set(listed)).toEqual(new Set(files));
  });

  test("[DOC2] every error code has a section in docs/troubleshooting.md", () => {
    const codes = (page: string, pattern: RegExp) =>
      [...read(page).matchAll(pattern)].map(([, code]) => code);
    const [table = ""] = read("docs/errors.md").split("\n## ");
    const documented = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code);
    expect(documented.length).toBeGreaterThan(40);
    expect(codes("docs/troubleshooting.md", /^### `(\w+)`$/gm).toSorted()).toEqual(documented.toSorted());
  });

  test("[DOC3] every command that a page shows exists", () => {
    const unknown = pages.flatMap(({ source, text }) =>
      shownCommands(text)
        .filter((words) => !isCommand(words))
        .map((words) => `${source}: skein ${words}`),
    );
    expect(unknown).toEqual([]);
    expect(shownCommands("`skein fly away`\n\n```sh\nskein sessions fly\n```").map(isCommand)).toEqual([
      false,
      false,
    ]);
  });
});

describe("the generated references", () => {
  test("docs/cli.md names every command of the reference", () => {
    const page = read("docs/cli.md");
    const missing = commands.slice(1).filter((command) => {
      const words = command.split(" ").slice(1);
      return !words.every((word) => new RegExp(`[\`\\[ ]${word}[\`\\] ]`).test(page));
    });
    expect(missing).toEqual([]);
  });

  test("the reference of settings has every setting of docs/configuration.md", () => {
    const namesIn = (page: string) =>
      [...page.matchAll(/^\| `([\w.<>-]+)` \|/gm)].map(([, name = ""]) =>
        name.replaceAll(/<\w+>/g, "<name>"),
      );
    const generated = new Set(namesIn(writeSettingsReference()));
    const documented = namesIn(read("docs/configuration.md").split("\n## ")[1] ?? "");
    expect(documented.filter((name) => !generated.has(name))).toEqual([]);
    expect(documented.length).toBeGreaterThan(150);
  });

  test("the site's packages are pinned", () => {
    const { dependencies } = JSON.parse(read("site/package.json")) as {
      dependencies: Record<string, string>;
    };
    for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(read("site/package-lock.json")).not.toContain('"resolved"');
  });
});
