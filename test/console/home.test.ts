import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Locator } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { maxFirstLoadBytes, measureConsole } from "../../scripts/build-console.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { skeinProgram } from "../support/programs.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, createFamily, startGateway } = await useConsole();
let gateway: GatewayProcess;

beforeAll(async () => {
  const config = await createFamily();
  gateway = await startGateway({ config });
});

describe.skipIf(browser === null)("the first page of the console", () => {
  test("leaves more than half of a phone's screen to the transcript", async () => {
    const page = await browser.open(gateway, "/", { width: 360, height: 740, hasTouch: true });
    const hints = page.getByRole("navigation", { name: "Start here" }).getByRole("link");
    const boxOf = (element: Locator) => element.evaluate((each) => each.getBoundingClientRect().toJSON());
    await expect.poll(() => hints.count()).toBe(3);
    const rows = await Promise.all((await hints.all()).map(boxOf));
    expect(new Set(rows.map(({ top }) => top)).size).toBe(1);
    for (const { height } of rows) expect(height).toBe(44);
    const message = page.getByLabel("Message", { exact: true });
    await expect.poll(() => message.inputValue()).toMatch(/^spawn three helpers to /);
    // The text is longer, and no part of its fourth line is visible.
    const isCut = () => message.evaluate((area) => [area.clientHeight, area.scrollHeight > 60]);
    await expect.poll(isCut).toEqual([60, true]);
    expect((await boxOf(message)).height).toBeLessThanOrEqual(3 * 20 + 24);
    const transcript = page.getByRole("region", { name: "Transcript", exact: true });
    await expect.poll(async () => (await boxOf(transcript)).height).toBeGreaterThan(370);

    const views = page.getByRole("navigation", { name: "Views of this session" });
    const last = views.getByRole("link", { name: "What the model sees" });
    await last.scrollIntoViewIfNeeded();
    expect((await boxOf(last)).right).toBeLessThanOrEqual((await boxOf(views)).right);
    await hints.last().tap();
    await page.getByRole("main").getByText("allowed").first().waitFor();
  });

  test("has marks on its thread for people, other sessions, summaries and forks, which lead to them", async () => {
    const page = await browser.open(gateway, "/");
    const rail = page.getByRole("navigation", { name: "Landmarks in the session" });
    for (const [kind, name] of Object.entries({
      user: /^You: ./,
      session: /^Another session: ./,
      compaction: /^Summary: ./,
      fork: /^Branches: ./,
    })) {
      const mark = rail.getByRole("button", { name }).first();
      await mark.click();
      const row = page.locator("[data-entry-id][data-target]");
      await row.waitFor();
      if (kind === "fork") await row.getByText(/^\d\/\d$/).waitFor();
      else await expect.poll(() => row.getAttribute("data-kind")).toBe(kind);
      expect(await mark.getAttribute("data-kind")).toBe(kind);
    }
  });

  test("shows its three links at once, so that none of them moves", async () => {
    const page = await browser.open(gateway, "/search");
    const isHeld = Promise.withResolvers<void>();
    const arrives = Promise.withResolvers<void>();
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage(async (text) => {
        if (String(text).includes('"sessions.tree"')) {
          isHeld.resolve();
          await arrives.promise;
        }
        server.send(text);
      });
    });
    await page.addInitScript(() => {
      const counts = new Set<number>();
      const look = () => {
        counts.add(document.querySelectorAll("nav[aria-label='Start here'] a").length);
        requestAnimationFrame(look);
      };
      look();
      Object.assign(globalThis, { counts });
    });
    await page.goto(`${gateway.url}/#/`);
    await page.reload();
    await isHeld.promise;
    await page.getByLabel("Message", { exact: true }).waitFor();
    await page.getByRole("list", { name: "Sessions in the family" }).getByText("support").waitFor();
    arrives.resolve();
    await page.getByRole("link", { name: "Open the second branch" }).waitFor();
    expect(await page.evaluate("[...counts].sort()")).toEqual([0, 3]);
  });

  test("is within the size budget with everything that it loads at once", async () => {
    const page = await browser.open(gateway, "/");
    await page.getByRole("list", { name: "Sessions in the family" }).getByRole("listitem").first().waitFor();
    await page.getByRole("navigation", { name: "Start here" }).waitFor();
    const paths = await page.evaluate(() =>
      performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname),
    );
    const files = ["index.html", ...new Set(paths.filter((path) => path.startsWith("/assets/")))];
    const built = join(dirname(dirname(skeinProgram)), "dist/console");
    const sizes = files.map((file) => gzipSync(readFileSync(join(built, file))).length);
    const loadedBytes = sizes.reduce((sum, size) => sum + size, 0);
    // The lanes are not named in the page, but the first view has them.
    expect(loadedBytes).toBeGreaterThan(measureConsole(join(built, "../..")).firstLoadBytes);
    expect(loadedBytes).toBeLessThanOrEqual(maxFirstLoadBytes);
  });

  test("is the same page as the one of main, which the sidebar marks together with Home", async () => {
    const page = await browser.open(gateway, "/");
    const lanes = page.getByRole("list", { name: "Sessions in the family" }).getByRole("listitem");
    const current = page.getByRole("complementary").first().locator("[aria-current=page]");
    const look = async () => {
      await page.locator("[data-entry-id]").first().waitFor();
      await lanes.first().waitFor();
      const hints = page.getByRole("navigation", { name: "Start here" }).getByRole("link");
      await expect.poll(() => hints.count()).toBe(3);
      const message = await page.getByLabel("Message", { exact: true }).inputValue();
      const marked = (await current.allInnerTexts()).map((text) => text.split("\n")[0]);
      return [page.url().split("#")[1], message, marked];
    };
    const first = expect.stringMatching(/^spawn three helpers to /);
    await expect.poll(look).toEqual(["/", first, ["Home", "main"]]);
    const main = page
      .getByRole("complementary")
      .first()
      .getByRole("list")
      .getByRole("link", { name: /^main/ });
    await main.click();
    await expect.poll(look).toEqual([sessionRoute("agent:main:main"), first, ["Home", "main"]]);
    await page.reload();
    await expect.poll(look).toEqual([sessionRoute("agent:main:main"), first, ["Home", "main"]]);
    await page.goto(`${gateway.url}/#${sessionRoute("agent:support:main")}`);
    await page.getByRole("heading", { name: "Session support", exact: true }).waitFor();
    await page.getByLabel("Message", { exact: true }).waitFor();
    await expect.poll(() => current.count()).toBe(1);
    await expect.poll(() => lanes.count()).toBe(0);
  });

  test("shows the note that a retried run adds as one of Skein", async () => {
    const page = await browser.open(gateway, sessionRoute("agent:main:session:weather"));
    await page.getByRole("button", { name: "Retry" }).click();
    const note = page.getByRole("article", { name: /^Skein, / });
    await note.getByText(/An earlier message was never answered/).waitFor();
    expect(await note.locator("header").innerText()).toMatch(/^Skein/);
    // The row of an answer that failed has its error and nothing else.
    const failed = page.locator("[data-entry-id]", { hasText: "The rehearsal model was asked to fail." });
    await failed.first().waitFor();
    await expect.poll(() => page.getByText("(empty)").count()).toBe(0);
  });

  test("does not bring a first message back that was deleted", async () => {
    const page = await browser.open(gateway, "/");
    const message = page.getByLabel("Message", { exact: true });
    await message.waitFor();
    await expect.poll(() => message.evaluate((area) => document.activeElement === area)).toBe(true);
    await message.clear();
    await page.reload();
    await message.waitFor();
    expect(await message.inputValue()).toBe("");
  });

  test("shows main with its family, three ways on, and a message that spawns helpers, until it was sent", async () => {
    const page = await browser.open(gateway, "/");
    const hints = page.getByRole("navigation", { name: "Start here" });
    const lanes = page.getByRole("list", { name: "Sessions in the family" }).getByRole("listitem");
    await page.getByText("summarize what is ready for spring").first().waitFor();
    await lanes.filter({ hasText: /^support\s*needs you$/ }).waitFor();
    const before = await lanes.count();
    expect(before).toBeGreaterThanOrEqual(4);
    for (const helper of ["helper-1", "helper-2", "helper-3"])
      await page.getByRole("link", { name: new RegExp(`^Spawn: main → ${helper}`) }).waitFor();
    await page.getByRole("link", { name: /^Message: main → support/ }).waitFor();
    const colors = (from = page) =>
      from
        .getByRole("list", { name: "Sessions in the family" })
        .getByRole("link")
        .evaluateAll((links) =>
          Object.fromEntries(
            links.map((link) => [link.getAttribute("href"), link.getAttribute("data-thread")]),
          ),
        );
    const first = await colors();

    await hints.getByRole("link", { name: "See what the model saw" }).click();
    await page.getByText("The request for this answer").first().waitFor();
    await page.goBack();
    await hints.getByRole("link", { name: "Open the second branch" }).click();
    await page.getByText("You are reading another branch").first().waitFor();
    await page.getByText("2/2", { exact: true }).waitFor();
    await page.goBack();
    await hints.getByRole("link", { name: "Why may support read main?" }).click();
    await page.getByRole("main").getByText("allowed").first().waitFor();
    await expect
      .poll(() => page.locator("details[open] > summary").allInnerTexts())
      .toEqual([expect.stringMatching(/^read\s*allowed/)]);
    await page.goBack();

    const message = page.getByLabel("Message", { exact: true });
    await expect.poll(() => message.inputValue()).toMatch(/^spawn three helpers to /);
    await message.press("Enter");
    await expect.poll(() => lanes.count()).toBe(before + 3);
    await page.getByText("compare two menus for dinner").first().waitFor();
    await expect.poll(() => message.inputValue()).toBe("");
    await page.getByText("helper-3 (2)", { exact: true }).first().waitFor();
    // Every session has its own color, and none has changed.
    await expect.poll(async () => new Set(Object.values(await colors())).size).toBe(before + 3);
    expect(Object.values(await colors())).toEqual(expect.arrayContaining(Object.values(first)));
    const last = await colors();
    await page.reload();
    await message.waitFor();
    expect(await message.inputValue()).toBe("");
    // Another browser does not offer the message again.
    const other = await browser.open(gateway, "/");
    const otherMessage = other.getByLabel("Message", { exact: true });
    await otherMessage.waitFor();
    expect(await otherMessage.inputValue()).toBe("");
    // The oldest session always has the color of its ID. Others may differ if a page learns of them in another order.
    const oldest = Object.entries(last).filter(([href]) => href.endsWith("agent%3Amain%3Amain"));
    expect(oldest).toHaveLength(1);
    for (const each of [page, other])
      await expect.poll(() => colors(each)).toMatchObject(Object.fromEntries(oldest));
  });
});
