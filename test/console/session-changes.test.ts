import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { openSkein } from "../../src/app.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import type { HeldModel } from "../support/held-model.ts";
import { firstRow, sessionRoute, settled, transcript } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, home, startGateway, startModel } = await useConsole();
let model: HeldModel;
let gateway: GatewayProcess;
let sent = 0;

/** More than one page of entries. */
const straw = Array.from({ length: 228 }, (_, index) => `straw ${index}`);

beforeAll(async () => {
  const skein = await openSkein({ dir: `${home.path}/root`, cwd: home.path, quiet: true });
  const texts = [...straw.slice(0, 2), "a needle in the hay", ...straw.slice(2), "a pin at the end"];
  await skein
    .session({ agentId: "main", sessionId: "long" })
    .append([
      { role: "user", content: "begin" },
      ...texts.map((text) => ({ role: "assistant" as const, content: [{ type: "text" as const, text }] })),
    ]);
  await skein.session({ agentId: "main", sessionId: "journal" }).append(
    Array.from({ length: 230 }, (_, index) => ({
      role: "user" as const,
      content: `Page ${index}\n\nwith a second paragraph`,
    })),
  );
  await skein.close();
  model = await startModel();
  gateway = await startGateway({ config: model.config });
});

const open = (key: string, query: Record<string, string> = {}) =>
  browser.open(gateway, sessionRoute(key, "", query));
const composer = (page: Page) => page.getByLabel("Message", { exact: true });
const found = (page: Page, text: string) => page.getByText(text).first();
const leaf = async (key: string) => (await gateway.call("sessions.get", { key })).leafId;

/** Sends a message. Returns the resulting model request and a function that answers it. */
async function ask(key: string, message: string) {
  const index = model.count;
  sent += 1;
  const idempotencyKey = `message ${sent}`;
  const { runId } = await gateway.call("chat.send", { sessionKey: key, message, idempotencyKey });
  const request = await model.request(index);
  const answer = async (text: string) => {
    request.finish(text);
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
  };
  return { request, answer };
}

const say = async (key: string, message: string, text: string) => (await ask(key, message)).answer(text);

async function entryId(key: string, text: string): Promise<string> {
  const { entries } = await gateway.call("sessions.entries", { key, along: "all", limit: 1000 });
  return entries.find((entry) => JSON.stringify(entry).includes(text))?.id ?? expect.fail(`no ${text}`);
}

describe.skipIf(browser === null)("an address that cannot be read", () => {
  test("says so once, and offers another page instead of a retry", async () => {
    const key = "agent:main:main";
    await say(key, "begin", "Begun.");
    const { token } = await gateway.call("tokens.create", { scopes: ["read", "write"], userId: "ann" });
    const page = await browser.open(gateway, sessionRoute(key, "", { user: "bob" }), {
      token,
    });
    await expect
      .poll(() => page.getByRole("alert").allInnerTexts())
      .toEqual([
        expect.stringMatching(
          /^This token belongs to another user. To open this address, sign in as its user.\s+All sessions$/,
        ),
      ]);
    expect(await composer(page).count()).toBe(0);

    const other = await open(key, { entry: "nowhere" });
    await other.getByRole("link", { name: "All sessions" }).waitFor();
    await expect.poll(() => other.getByRole("alert").count()).toBe(1);
    expect(await other.getByRole("button", { name: "Retry" }).count()).toBe(0);
    await other.getByRole("link", { name: "Open the session" }).click();
    await found(other, "Begun.").waitFor();
  });
});

describe.skipIf(browser === null)("a session that changes while it is read", () => {
  test("a link to an entry of another branch reads that branch, and live answers stay away from it", async () => {
    const key = "agent:main:matrix:user:@a%3Ab.org";
    await say(key, "begin", "Begun.");
    const fork = await leaf(key);
    await say(key, "to the north", "The north is cold.");
    await gateway.call("sessions.branch", { key, entryId: fork });
    await say(key, "to the south", "The south is warm.");
    const before = await leaf(key);

    const page = await open(key, { entry: await entryId(key, "The north is cold.") });
    await page.locator("[data-target]").getByText("The north is cold.").waitFor();
    await found(page, "You are reading another branch").waitFor();
    expect(await composer(page).count()).toBe(0);
    expect(await page.getByText("The south is warm.").count()).toBe(0);
    const { request, answer } = await ask(key, "go on");
    request.stream("Growing ");
    await found(page, "where the agent is working").waitFor();
    expect(await page.locator("[data-live]").count()).toBe(0);
    expect(await page.getByText("go on").count()).toBe(0);
    await answer("here.");
    await found(page, "Messages still go to the active one.").waitFor();

    await page.getByRole("link", { name: "Back to the active branch" }).click();
    await found(page, "Growing here.").waitFor();
    await composer(page).waitFor();
    expect(
      (await gateway.call("sessions.tree", { key })).entries.find(({ id }) => id === before)?.active,
    ).toBe(true);
  });

  test("a long session is searched in both directions, redacted further up, and left for its end", async () => {
    const key = "agent:main:session:long";
    const needle = await entryId(key, "a needle in the hay");
    const search = async (page: Page, words: string) => {
      await page.keyboard.press("Control+f");
      await page.getByLabel("Find in session").fill(words);
      await found(page, "1 of 1").waitFor();
      await page.locator("mark", { hasText: words }).waitFor();
    };

    const page = await open(key);
    await found(page, "a pin at the end").waitFor();
    expect(await page.getByText("a needle in the hay").count()).toBe(0);
    await search(page, "needle");

    const above = await open(key, { entry: needle });
    await found(above, "a needle in the hay").waitFor();
    const { request, answer } = await ask(key, "go on");
    request.stream("Growing ");
    await found(above, "The agent is working.").waitFor();
    expect(await above.locator("[data-live]").count()).toBe(0);
    await above.getByRole("button", { name: "Go to the end" }).click();
    await above.locator("[data-live]").getByText("Growing").waitFor();
    await answer("here.");
    await above.reload();
    await found(above, "a needle in the hay").waitFor();
    await search(above, "pin");

    await gateway.call("sessions.redact", { key, entryIds: [needle] });
    // The needle was the only match. It was on a page loaded before the last one.
    await found(page, "No match").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await expect.poll(() => page.getByText("a needle in the hay").count()).toBe(0);
  });

  test("is at the same place when the reader goes back to it, and at its end when a link opens it", async () => {
    const page = await open("agent:main:session:journal");
    await found(page, "Page 229").waitFor();
    const usage = async () => {
      await page.getByRole("link", { name: "Usage" }).click();
      await page.getByText("Unpriced").first().waitFor();
    };
    const leaveAndReturn = async () => {
      await settled(page);
      const [id, top] = await firstRow(page);
      await usage();
      await page.goBack();
      await transcript(page).waitFor();
      const place = async () => {
        const [shown, now] = await firstRow(page);
        return shown === id ? Math.abs(Number(now) - Number(top)) : shown;
      };
      await expect.poll(place).toBeLessThanOrEqual(1);
      expect(await page.locator("[data-target]").count()).toBe(0);
    };
    await settled(page);
    await transcript(page).evaluate((list) => list.scrollBy(0, -330));
    await leaveAndReturn();
    // The pages above arrive one after the other.
    await expect
      .poll(async () => {
        await transcript(page).evaluate((list) => list.scrollTo(0, 0));
        return page.getByText("Page 0", { exact: true }).count();
      })
      .toBe(1);
    await settled(page);
    await transcript(page).evaluate((list) => list.scrollTo(0, 330));
    await leaveAndReturn();

    await usage();
    await page
      .getByRole("complementary")
      .getByRole("link", { name: /journal/ })
      .click();
    await found(page, "Page 229").waitFor();
    // The end is not a place to return to, because it moves on.
    await settled(page);
    await usage();
    await gateway.call("chat.inject", {
      sessionKey: "agent:main:session:journal",
      message: "The last page",
      idempotencyKey: "last page",
    });
    await page.goBack();
    await found(page, "The last page").waitFor();
  });

  test("keeps its end or its first row in view when the height of the window changes, as by a phone's keyboard", async () => {
    const page = await open("agent:main:session:journal");
    await found(page, "Page 229").waitFor();
    const isAtEnd = () =>
      transcript(page).evaluate((list) => list.scrollHeight - list.clientHeight - list.scrollTop < 1);
    const resize = async (height: number) => {
      await page.setViewportSize({ width: 1280, height });
      await settled(page);
    };
    await settled(page);
    for (const height of [400, 800]) {
      await resize(height);
      await expect.poll(isAtEnd).toBe(true);
    }
    await transcript(page).evaluate((list) => list.scrollBy(0, -330));
    await settled(page);
    const before = await firstRow(page);
    for (const height of [400, 800]) {
      await resize(height);
      await expect.poll(() => firstRow(page)).toEqual(before);
    }
  });

  test("a reset, deleted, restored or missing session says so, and only an existing one has a composer", async () => {
    const key = "agent:main:gone";
    await say(key, "begin", "The first conversation.");
    const page = await open(key);
    await found(page, "The first conversation.").waitFor();
    await gateway.call("sessions.reset", { key });
    await found(page, "No messages yet.").waitFor();
    await say(key, "begin again", "The second conversation.");
    await found(page, "The second conversation.").waitFor();
    expect(await page.getByText("The first conversation.").count()).toBe(0);

    await gateway.call("sessions.delete", { key });
    await found(page, "This session was deleted.").waitFor();
    expect(await composer(page).count()).toBe(0);
    await page.getByRole("button", { name: "Restore" }).click();
    await composer(page).waitFor();
    await gateway.call("sessions.delete", { key });
    await found(page, "This session was deleted.").waitFor();
    await page.reload();
    await found(page, "It is in the trash").waitFor();
    expect(await composer(page).count()).toBe(0);

    const missing = await open("agent:main:never");
    await expect
      .poll(() => missing.getByRole("alert").allInnerTexts())
      .toEqual([
        expect.stringMatching(
          /^Session not found: "agent:main:never". It may have been deleted, or it may belong to another user.\s+All sessions$/,
        ),
      ]);
    expect(await composer(missing).count()).toBe(0);
    await missing.goto(`${gateway.url}/#/s/%`);
    await missing.reload();
    await missing.getByRole("link", { name: "All sessions" }).waitFor();
    await missing.getByRole("list", { name: "Sessions" }).getByText("long").first().waitFor();
    const first = await open("agent:main:main");
    await composer(first).fill("hello");
    const index = model.count;
    await composer(first).press("Enter");
    (await model.request(index)).finish("The main session.");
    await found(first, "The main session.").waitFor();
  });

  test("offline opens the palette, which was loaded before, and otherwise says why it cannot, without moving the page", async () => {
    const page = await open("agent:main:session:long");
    const message = composer(page);
    const palette = page.getByRole("dialog", { name: "Go to" });
    const isPalette = /\/assets\/palette-[^/]+\.js$/;
    await message.waitFor();
    const hasLoadedPalette = () =>
      page.evaluate(() => {
        const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
        const links = [
          ...document.querySelectorAll<HTMLLinkElement>("link[rel=modulepreload], link[rel=stylesheet]"),
        ];
        const wanted = links.map(({ href }) => href);
        return (
          wanted.some((href) => href.includes("/palette-")) && wanted.every((href) => loaded.includes(href))
        );
      });
    await expect.poll(hasLoadedPalette).toBe(true);
    const port = Number(new URL(gateway.url).port);
    await gateway.stop("SIGKILL");
    try {
      await page.getByText("Gateway offline. Reconnecting…").first().waitFor();
      await page.keyboard.press("Control+k");
      await palette.getByRole("combobox").waitFor();
      await page.keyboard.press("Escape");
    } finally {
      gateway = await startGateway({ port });
    }

    await page.route(isPalette, (route) => route.abort());
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 740 });
      await page.reload();
      const button = page.getByRole("button", { name: "Go to…" });
      await message.waitFor();
      const place = await button.boundingBox();
      await message.focus();
      await page.keyboard.press("Control+k");
      const failure = page.getByRole("alert").filter({ hasText: "could not be loaded from the gateway" });
      await failure.waitFor();
      expect(await button.boundingBox()).toEqual(place);
      const { x = -1, width: wide = 0 } = (await failure.boundingBox()) ?? {};
      expect(x >= 0 && x + wide <= width).toBe(true);
      await page.keyboard.type("usage");
      expect(await message.inputValue()).toBe("");
      await page.keyboard.press("Escape");
      await failure.waitFor({ state: "detached" });
      await button.click();
      await failure.waitFor();
    }
    expect(browser.problems.splice(0).join()).toContain("could not be loaded");
    await page.unroute(isPalette);
    await page.getByRole("button", { name: "Try again" }).click();
    await palette.getByRole("combobox").waitFor();
  });
});
