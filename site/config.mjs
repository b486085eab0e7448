// The configuration of VitePress. `npm run docs` copies it next to the pages, with the side bar in contents.json.
import { readFileSync } from "node:fs";

const contents = JSON.parse(readFileSync(new URL("contents.json", import.meta.url), "utf8"));
const { slugOf } = await import(contents.markdown);

export default {
  title: "Skein",
  description: "A durable session layer for AI agents.",
  lang: "en-US",
  base: contents.base,
  outDir: contents.out,
  cleanUrls: true,
  appearance: true,
  // The pages are checked after the build, with their anchors.
  ignoreDeadLinks: true,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${contents.base}icon.svg` }]],
  // Older targets have no light-dark().
  vite: { build: { cssTarget: "chrome123" } },
  markdown: {
    anchor: { slugify: slugOf },
    headers: { slugify: slugOf },
    toc: { slugify: slugOf },
    theme: { light: "min-light", dark: "min-dark" },
  },
  themeConfig: {
    search: { provider: "local", options: { miniSearch: { searchOptions: { boost: { title: 4 } } } } },
    sidebar: contents.sideBar,
    nav: [
      { text: "Tutorial", link: "/tutorial" },
      { text: "Concepts", link: "/concepts" },
      { text: "Reference", link: "/api/" },
      { text: "Errors", link: "/troubleshooting" },
    ],
    outline: { level: [2, 3], label: "On this page" },
    externalLinkIcon: true,
  },
};
