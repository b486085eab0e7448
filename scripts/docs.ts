// npm run docs: builds the documentation site in site/dist, and checks its links, its search and what it loads.
// Options: --base /path/ for a site below a path, --serve to serve the site on this machine after the build.
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { writeApiReference } from "./docs/api-reference.ts";
import { findSiteProblems } from "./docs/check-site.ts";
import { writeCliReference } from "./docs/cli-reference.ts";
import { contentsPage, readSideBar, sitePathOf } from "./docs/pages.ts";
import { writeSettingsReference } from "./docs/settings-reference.ts";
import { collectDrawingStyles, writePages } from "./docs/write-pages.ts";
import { installPinned } from "./install-pinned.ts";
import { root, runStep } from "./steps.ts";

const { values } = parseArgs({
  options: { base: { type: "string", default: "/" }, serve: { type: "boolean", default: false } },
});
if (!/^\/(?:[^/]+\/)*$/.test(values.base))
  throw new Error(
    `--base must be a path that begins and ends with a slash, such as /docs/, not "${values.base}"`,
  );

const tools = join(root, "site/.build");
const pages = join(tools, "pages");
const out = join(root, "site/dist");
/** The title of a page. The search finds it only if the site is complete. */
const knownTerm = "sessions_spawn";

installPinned({ name: "docs", size: "150 MB", pinned: join(root, "site"), folder: tools });
rmSync(pages, { recursive: true, force: true });
rmSync(out, { recursive: true, force: true });
mkdirSync(join(pages, "public"), { recursive: true });
writePages(pages);
writeFileSync(join(pages, "commands.md"), await writeCliReference());
writeFileSync(join(pages, "settings.md"), writeSettingsReference());
const entries = await writeApiReference(tools, pages);
configure(entries);

const vitepress = join(tools, "node_modules/vitepress/bin/vitepress.js");
await runStep("site", process.execPath, [vitepress, "build", pages]);
const problems = findSiteProblems(out, values.base, knownTerm);
if (problems.length > 0) {
  console.log(`FAIL  links, search and resources\n${problems.join("\n")}`);
  process.exit(1);
}
console.log(
  `ok    links, search and resources\nThe site is in ${out}. Publish this folder with any web server.`,
);
if (values.serve) spawn(process.execPath, [vitepress, "preview", pages], { stdio: "inherit" });
else console.log("To read it on this machine: npm run docs -- --serve");

/** Writes VitePress's configuration, with a sidebar in the order of the list of pages. */
function configure(names: readonly string[]): void {
  const folder = join(pages, ".vitepress");
  mkdirSync(join(folder, "theme"), { recursive: true });
  cpSync(join(root, "site/config.mjs"), join(folder, "config.mjs"));
  cpSync(join(root, "site/theme.mjs"), join(folder, "theme/index.mjs"));
  const theme = readFileSync(join(root, "site/theme.css"), "utf8");
  writeFileSync(join(folder, "theme/theme.css"), `${theme}\n${collectDrawingStyles()}`);
  cpSync(join(root, "console/src/icon.svg"), join(pages, "public/icon.svg"));
  const introduction = [
    { text: "Introduction", link: "/" },
    { text: "All pages", link: `/${sitePathOf(contentsPage)}` },
  ];
  const generated = [
    { text: "Commands and options", link: "/commands" },
    { text: "Settings and their values", link: "/settings" },
    ...names.map((name) => ({ text: name, link: `/api/${name}/` })),
  ];
  const sideBar = [
    { items: introduction },
    ...readSideBar().map((section) =>
      section.text === "Reference" ? { ...section, items: [...section.items, ...generated] } : section,
    ),
  ];
  const markdown = pathToFileURL(join(root, "scripts/docs/markdown.ts")).href;
  writeFileSync(join(folder, "contents.json"), JSON.stringify({ base: values.base, out, sideBar, markdown }));
}
