import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** What a built page refers to. */
interface BuiltPage {
  readonly path: string;
  readonly ids: ReadonlySet<string>;
  readonly links: readonly string[];
  /** Addresses that a browser loads when it opens the page. */
  readonly loaded: readonly string[];
}

/** Describes every broken link and every external resource of a built site, and checks that its search finds a term. */
export function findSiteProblems(folder: string, base: string, term: string): string[] {
  const files = new Set(globSync("**/*", { cwd: folder }).map((file) => file.replaceAll("\\", "/")));
  const pages = [...files]
    .filter((file) => file.endsWith(".html"))
    .map((path) => readBuiltPage(folder, path));
  const byPath = new Map(pages.map((page) => [page.path, page]));
  const isThere = (path: string) => files.has(path) || byPath.has(`${path}.html`);
  const problems = pages.flatMap((page) => [
    ...page.loaded.filter(isElsewhere).map((address) => `${page.path} loads ${address}`),
    ...[...page.links, ...page.loaded]
      .filter((address) => !isElsewhere(address) && !/^(?:data|mailto):/.test(address))
      .flatMap((address) => {
        const [target = "", anchor = ""] = address.split("#");
        const path = target === "" ? page.path : locate(page.path, target, base);
        if (path === null || !isThere(path)) return [`${page.path}: ${address} leads nowhere`];
        const linked = byPath.get(path) ?? byPath.get(`${path}.html`);
        const isHeading = anchor === "" || linked === undefined || linked.ids.has(decodeURIComponent(anchor));
        return isHeading ? [] : [`${page.path}: ${address} is not a heading`];
      }),
  ]);
  const styles = [...files].filter((file) => file.endsWith(".css"));
  const elsewhere = styles.filter((file) =>
    /url\(["']?(?:https?:)?\/\/|@import/.test(readFileSync(join(folder, file), "utf8")),
  );
  const indexes = [...files].filter((file) => /localSearchIndex.*\.js$/.test(file));
  const isFound = indexes.some((file) => readFileSync(join(folder, file), "utf8").includes(term));
  return [
    ...new Set(problems),
    ...elsewhere.map((file) => `${file} loads a style or font from another address`),
    ...(isFound ? [] : [`the search index does not contain ${term}`]),
  ];
}

function readBuiltPage(folder: string, path: string): BuiltPage {
  const html = readFileSync(join(folder, path), "utf8");
  const values = (pattern: RegExp) =>
    [...html.matchAll(pattern)].map(([, value = ""]) => value.replaceAll("&amp;", "&"));
  return {
    path,
    ids: new Set(values(/\sid="([^"]*)"/g)),
    links: values(/<a\s[^>]*?href="([^"]*)"/g),
    loaded: values(/<(?:link|script|img|source|iframe)\s[^>]*?(?:href|src)="([^"]*)"/g),
  };
}

function isElsewhere(address: string): boolean {
  return /^(?:https?:)?\/\//.test(address);
}

/** Returns the file that an address refers to, or `null` if the address is outside the site. */
function locate(from: string, target: string, base: string): string | null {
  if (target.startsWith("/") && !target.startsWith(base)) return null;
  const path = target.startsWith("/")
    ? target.slice(base.length)
    : posix.join(posix.dirname(from), target).replace(/^\.\//, "");
  return path === "" || path.endsWith("/") ? `${path}index.html` : path;
}
