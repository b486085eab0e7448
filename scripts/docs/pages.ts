import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { root } from "../steps.ts";
import { headingsOf, joinInlineCode, linksOf, plainText } from "./markdown.ts";

/** A Markdown file in the repository that becomes a page of the site. */
export interface Page {
  /** Its path in the repository. */
  readonly source: string;
  /** Its address on the site, without a slash at the beginning. */
  readonly path: string;
  readonly text: string;
}

export interface SideBarSection {
  readonly text: string;
  readonly items: readonly { text: string; link: string }[];
}

/** The list of all pages, which determines the order of the sidebar. */
export const contentsPage = "docs/README.md";

/** Addresses of pages outside `docs/`. */
const places: Readonly<Record<string, string>> = {
  "README.md": "index",
  "docs/README.md": "contents",
  "CONTEXT.md": "glossary",
  "SPEC.md": "guarantees",
  "SECURITY.md": "security-model",
  "CONTRIBUTING.md": "contributing",
  "CHANGELOG.md": "changelog",
};

export function sitePathOf(source: string): string {
  const place = places[source] ?? source.replace(/^docs\//, "").replace(/(?:\/README)?\.md$/, "");
  return place.toLowerCase();
}

export function readPage(source: string): Page {
  return { source, path: sitePathOf(source), text: joinInlineCode(readFileSync(join(root, source), "utf8")) };
}

export function isExternal(target: string): boolean {
  return /^[a-z]+:/i.test(target);
}

/** Resolves a link to a path in the repository. A link to a folder means its README. */
export function resolveLink(source: string, target: string): { file: string; anchor: string } {
  const [path = "", anchor = ""] = target.split("#");
  const file = path === "" ? source : posix.join(dirname(source), path).replace(/\/$/, "");
  const isFolder = existsSync(join(root, file)) && statSync(join(root, file)).isDirectory();
  const readme = posix.join(file, "README.md");
  return { file: isFolder && existsSync(join(root, readme)) ? readme : file, anchor };
}

/** Returns the README, the list of pages, and every Markdown file that a page links to. */
export function collectPages(): Page[] {
  const pages = new Map<string, Page>();
  const pending = ["README.md", contentsPage];
  for (let source = pending.pop(); source !== undefined; source = pending.pop()) {
    if (pages.has(source) || !existsSync(join(root, source))) continue;
    const page = readPage(source);
    pages.set(source, page);
    for (const { target } of linksOf(page.text).filter((link) => !isExternal(link.target))) {
      const { file } = resolveLink(source, target);
      if (file.endsWith(".md")) pending.push(file);
    }
  }
  return [...pages.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** The sections of the list of pages. The title of a link with an anchor is the heading that the anchor names. */
export function readSideBar(): SideBarSection[] {
  const { text } = readPage(contentsPage);
  return text
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const title = section.slice(0, section.indexOf("\n"));
      const rows = [...section.matchAll(/^\| \[[^\]]+\]\(([^)]+)\) \|/gm)];
      return { text: title, items: rows.map(([, target = ""]) => readItem(target)) };
    });
}

function readItem(target: string): { text: string; link: string } {
  const { file, anchor } = resolveLink(contentsPage, target);
  const { path, text } = readPage(file);
  const headings = headingsOf(text);
  const heading = anchor === "" ? headings[0] : headings.find(({ id }) => id === anchor);
  if (heading === undefined) throw new Error(`${contentsPage}: ${target} has no heading`);
  return { text: plainText(heading.text), link: `/${path}${anchor === "" ? "" : `#${anchor}`}` };
}

/** Describes every link of the given pages that leads to a missing file or heading. */
export function findBrokenLinks(pages: readonly Pick<Page, "source" | "text">[]): string[] {
  const ids = new Map<string, Set<string>>();
  const idsOf = (file: string, text: string) => {
    const known = ids.get(file) ?? new Set(headingsOf(text).map(({ id }) => id));
    ids.set(file, known);
    return known;
  };
  return pages.flatMap(({ source, text }) =>
    linksOf(text)
      .filter(({ target }) => !isExternal(target))
      .flatMap(({ target, line }) => {
        const { file, anchor } = resolveLink(source, target);
        const here = `${source}:${line}: ${target}`;
        if (file !== source && !existsSync(join(root, file))) return [`${here}: no such file`];
        if (anchor === "" || !file.endsWith(".md")) return [];
        const linked = file === source ? text : readFileSync(join(root, file), "utf8");
        return idsOf(file, linked).has(anchor) ? [] : [`${here}: no such heading`];
      }),
  );
}
