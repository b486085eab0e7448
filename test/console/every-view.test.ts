import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeFamily } from "../../scripts/sample-family.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { ConsoleBrowser, sessionRoute } from "./console-browser.ts";

const browser = (await ConsoleBrowser.launch()) as ConsoleBrowser;
const home = temporaryFolder("skein-console-");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let gateway: GatewayProcess;

beforeAll(async () => {
  await makeFamily(`${home.path}/root`, { say: () => undefined });
  gateway = await GatewayProcess.start(home.path, {
    config: readFileSync(`${home.path}/root/skein.yaml`, "utf8"),
  });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop("SIGKILL");
  home.remove();
});
afterEach(() => browser?.closePages());

const main = "agent:main:main";

/** Each view with a text that is there once it has loaded. */
const views = [
  { name: "home", route: "/", text: "Family" },
  { name: "session", route: sessionRoute(main), text: "summarize what is ready for spring" },
  { name: "desk", route: "/sessions", text: /^Needs you/ },
  { name: "family as lanes", route: sessionRoute(main, "family"), text: "support" },
  { name: "family as a graph", route: sessionRoute(main, "family", { tab: "graph" }), text: "support" },
  {
    name: "family as a table",
    route: sessionRoute(main, "family", { tab: "table" }),
    text: "Between sessions",
  },
  { name: "x-ray", route: sessionRoute(main, "context"), text: "The next request" },
  { name: "tree", route: sessionRoute(main, "tree"), text: "for families" },
  { name: "runs", route: "/work", text: "fail with status 429" },
  { name: "approvals", route: "/work?tab=approvals", text: "sessions_send" },
  { name: "outbox", route: "/work?tab=outbox", text: "Outbox" },
  { name: "search", route: "/search?q=garden", text: "garden" },
  { name: "usage", route: "/usage", text: "Without a price" },
  { name: "access", route: "/access", text: "Access" },
];

async function shows(page: Page, text: string | RegExp): Promise<void> {
  await page.getByRole("main").getByText(text).first().waitFor();
}

interface Checker {
  run(options: {
    runOnly?: readonly string[];
  }): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** What axe finds, in one line each. */
async function violations(page: Page, rules: readonly string[] = []): Promise<string[]> {
  // Through the debugging protocol, which the content security policy does not apply to.
  await page.evaluate(axe);
  return page.evaluate(async (only) => {
    const { axe: checker } = globalThis as unknown as { axe: Checker };
    const { violations: found } = await checker.run(only.length === 0 ? {} : { runOnly: only });
    return found.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  }, rules);
}

describe.skipIf(browser === null).each(views)("the view $name", ({ route, text }) => {
  test("is accessible in light and dark, and shows the same after a reload", async () => {
    for (const isDark of [false, true]) {
      const page = await browser.open(gateway, route, { isDark });
      await shows(page, text);
      expect(await violations(page, isDark ? ["color-contrast"] : [])).toEqual([]);
      if (isDark) continue;
      await page.reload();
      await shows(page, text);
      expect(new URL(page.url()).hash).toBe(`#${route}`);
    }
  });

  test("fits a phone of 360 pixels", async () => {
    const page = await browser.open(gateway, route, { width: 360, height: 740, hasTouch: true });
    await shows(page, text);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
    expect(await violations(page)).toEqual([]);
  });
});
