import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorCatalogue } from "../../src/core/errors.ts";
import type { ErrorCode } from "../../src/index.ts";
import { root } from "../steps.ts";
import { headingsOf, mapLinks, mapProse } from "./markdown.ts";
import type { Page } from "./pages.ts";
import { collectPages, isExternal, resolveLink, sitePathOf } from "./pages.ts";

/** The page with a heading for each error code. */
export const troubleshootingPage = "docs/troubleshooting.md";

/** Writes the repository's pages to a folder, with their images and the links between them. */
export function writePages(folder: string): void {
  const pages = collectPages();
  const titles = new Map(pages.map(({ source, text }) => [source, headingsOf(text)[0]?.text ?? source]));
  for (const page of pages) {
    const file = join(folder, `${page.path}.md`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, convert(page, titles, folder));
  }
}

/**
 * `titles` contains the title of each page of the site. A link whose text is a file name gets the page's title instead.
 */
function convert(page: Page, titles: ReadonlyMap<string, string>, folder: string): string {
  const markdown = page.text.replaceAll(/<!--[\s\S]*?-->\n?/g, "");
  const linked = mapLinks(markdown, ({ target, text: label, isImage }) => {
    if (isExternal(target)) return null;
    const { file, anchor } = resolveLink(page.source, target);
    if (isImage) return showImage(file, label, folder);
    // A file that is not a page stays in the repository.
    const title = titles.get(file);
    if (title === undefined) return label;
    const text = /^[\w./-]+\.md$/.test(label) ? title : label;
    return `[${text}](${target.startsWith("#") ? "" : `/${sitePathOf(file)}.md`}${anchor === "" ? "" : `#${anchor}`})`;
  });
  if (page.source === troubleshootingPage) return addMessages(linked);
  if (page.source === "docs/errors.md") return linkCodes(linked);
  return linked;
}

const drawingStyle = /<style>([\s\S]*?)<\/style>/;

/**
 * A drawing with colors for both themes becomes part of the page and follows the page's theme. Vue allows no styles in
 * a page, so the drawing's styles are in the site's theme. Other images are copied.
 */
function showImage(file: string, label: string, folder: string): string {
  const drawing = readDrawing(file);
  if (drawing !== null)
    return `<figure class="drawing">${drawing.replace(drawingStyle, "").replaceAll(/\n\s*/g, " ")}</figure>`;
  const path = file.replace(/^docs\//, "");
  cpSync(join(root, file), join(folder, "public", path));
  return `![${label}](/${path})`;
}

/** Returns an SVG file that has colors for both themes, or `null`. */
function readDrawing(file: string): string | null {
  const text = file.endsWith(".svg") ? readFileSync(join(root, file), "utf8") : "";
  return text.includes("light-dark(") ? text : null;
}

/** Returns the drawings' styles without the `:root` rule, which selects the theme. The page selects it instead. */
export function collectDrawingStyles(): string {
  const drawings = globSync("docs/images/*.svg", { cwd: root }).map((file) => readDrawing(file) ?? "");
  return drawings
    .map((drawing) => (drawingStyle.exec(drawing)?.[1] ?? "").replace(/:root \{.*\}/, ""))
    .map((rules) => `.drawing {${rules}}\n`)
    .join("");
}

/** Adds the message of each code below its heading, from the catalog. */
function addMessages(text: string): string {
  return mapProse(text, (line) => {
    const [, code = ""] = /^### `(\w+)`$/.exec(line) ?? [];
    if (!(code in errorCatalogue)) return line;
    const { status, text: message, remedy } = errorCatalogue[code as ErrorCode];
    return `${line}\n\n> ${message} ${remedy}\n\nHTTP status ${status}.\n`;
  });
}

/** Links each code in the table of errors to its heading. */
function linkCodes(text: string): string {
  return mapProse(text, (line) =>
    line.replace(/^\| `(\w+)` \|/, (cell, code: string) =>
      code in errorCatalogue ? `| [\`${code}\`](/${sitePathOf(troubleshootingPage)}.md#${code}) |` : cell,
    ),
  );
}
