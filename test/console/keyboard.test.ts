import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { sessionRoute, shownEntries, tabTo } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway } = await useConsole();
let gateway: GatewayProcess;

const config = `agents:
  main: { model: rehearsal/basic, tools: { ask: [session_search] } }
  support: { model: rehearsal/basic }
`;

beforeAll(async () => {
  gateway = await startGateway({ config });
  for (const name of ["garden", "kitchen", "terrace"])
    await gateway.call("sessions.create", { key: `agent:support:${name}`, label: name });
});

/** Opens a page or runs an action from the palette. */
async function goTo(page: Page, name: string): Promise<void> {
  const palette = page.getByRole("dialog", { name: "Go to" });
  await page.keyboard.press("Control+k");
  await palette.getByRole("combobox").waitFor();
  await page.keyboard.type(name);
  await palette.getByRole("option", { name, exact: true }).waitFor();
  await page.keyboard.press("Enter");
  await palette.waitFor({ state: "detached" });
}

const focusedLabel = (page: Page) =>
  page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.id ?? "");
const focusedName = (page: Page) => page.evaluate(() => document.activeElement?.textContent ?? "");
const selectedText = /^1 .*selected$/;
const row = 'main [aria-label="Sessions"] a';
const composer = "textarea[aria-label=Message]";

describe.skipIf(browser === null)("the console by keyboard alone", () => {
  test("goes to the desk, selects, opens a session, sends a message and looks at what the model saw", async () => {
    const page = await browser.open(gateway, "/");
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await goTo(page, "Sessions");
    await page.getByRole("main").getByRole("link", { name: "garden" }).waitFor();
    // The new page has the focus, without a frame around all of it.
    await expect.poll(() => focusedLabel(page)).toBe("content");
    const content = page.locator("#content:focus-visible");
    expect(await content.evaluate((element) => getComputedStyle(element).outlineStyle)).toBe("none");
    await page.reload();
    await page.getByRole("main").getByRole("link", { name: "garden" }).waitFor();
    await tabTo(page, "button");
    expect(await focusedName(page)).toBe("Skip to content");
    await page.keyboard.press("Enter");
    await tabTo(page, row);
    await page.keyboard.press("x");
    await page.getByText(selectedText).first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByText(selectedText).waitFor({ state: "detached" });
    const name = await focusedName(page);
    await page.keyboard.press("Enter");

    await page.getByRole("heading", { name: `Session ${name}`, exact: true }).waitFor();
    await expect.poll(() => page.title()).toBe(`Session ${name} · Skein`);
    // The reader can write at once.
    await expect.poll(() => focusedLabel(page)).toBe("Message");
    await page.keyboard.type("repeat from the keys");
    await page.keyboard.press("Enter");
    await page.locator("[data-entry-id][data-kind=agent]", { hasText: "from the keys" }).waitFor();
    await tabTo(page, "[data-kind=agent] a[href*=context]", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByText("The request for this answer").first().waitFor();
    await tabTo(page, "a[href*=entry]:not([href*=context])");
    expect(await focusedName(page)).toBe("Go to the answer");
    await page.keyboard.press("Enter");
    await page.locator("[data-entry-id][data-target]", { hasText: "from the keys" }).waitFor();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await expect.poll(() => focusedLabel(page)).toBe("content");
    // All of the transcript's landmarks are a single tab stop.
    await tabTo(page, "nav[aria-label='Landmarks of the session'] button", "Shift+Tab");
  });

  test("answers approvals, labels an entry and finds text, and the focus stays close", async () => {
    const page = await browser.open(gateway, sessionRoute("agent:main:main"));
    const ask = (topic: string) =>
      gateway.call("chat.send", {
        sessionKey: "agent:main:main",
        message: `search for ${topic}`,
        idempotencyKey: topic,
      });
    const questions = page.getByRole("region", { name: "Needs you" });
    await ask("rooms");
    await questions.getByText("rooms").waitFor();
    // A question that has just arrived does not react yet.
    await questions.locator("[data-act=approve]:not([aria-disabled])").waitFor();
    await tabTo(page, "[data-act=approve]");
    await page.keyboard.press("Enter");
    await questions.waitFor({ state: "detached" });
    await expect.poll(() => focusedLabel(page)).toBe("Transcript");

    // The next question is shown immediately.
    await ask("chairs");
    await questions.getByText("chairs").waitFor();
    await questions.locator("[data-act=deny]:not([aria-disabled])").waitFor();
    await tabTo(page, "[data-act=deny]");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedLabel(page)).toBe("Reason, for the model (optional)");
    await page.keyboard.press("Escape");
    await expect.poll(() => focusedName(page)).toContain("Deny…");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedLabel(page)).toBe("Reason, for the model (optional)");
    await page.keyboard.type("not now");
    await page.keyboard.press("Enter");
    await questions.waitFor({ state: "detached" });
    await expect.poll(() => focusedLabel(page)).toBe("Transcript");

    await page.keyboard.press("Control+f");
    await expect.poll(() => focusedLabel(page)).toBe("Find in session");
    await page.keyboard.type("chairs");
    await tabTo(page, composer);
    await page.keyboard.press("Control+f");
    await expect.poll(() => focusedLabel(page)).toBe("Find in session");
    await page.keyboard.press("Escape");
    await expect.poll(() => focusedLabel(page)).toBe("Transcript");

    await tabTo(page, "a[href$=tree]", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("tree").waitFor();
    await tabTo(page, "[role=tree]");
    await page.keyboard.press("l");
    await expect.poll(() => focusedLabel(page)).toBe("Label of this entry");
    await page.keyboard.type("furniture");
    await page.keyboard.press("Enter");
    await page.getByRole("tree").getByText("furniture").waitFor();
    await expect.poll(() => focusedLabel(page)).toBe("Entries on all branches");
  });

  test("returns the focus from the palette to where it was, or to the page that it opens", async () => {
    const page = await browser.open(gateway, "/sessions");
    await page.getByRole("main").getByRole("link", { name: "garden" }).waitFor();
    const palette = page.getByRole("dialog", { name: "Go to" });
    const look = async () => {
      await page.keyboard.press("Control+k");
      await palette.getByRole("combobox").waitFor();
      await page.keyboard.press("Escape");
      await palette.waitFor({ state: "detached" });
    };
    await tabTo(page, row);
    const first = await focusedName(page);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focusedName(page)).not.toBe(first);
    const name = await focusedName(page);
    await look();
    await expect.poll(() => focusedName(page)).toBe(name);
    for (const session of ["terrace", "kitchen"]) {
      await goTo(page, session);
      await page.getByRole("heading", { name: `Session ${session}`, exact: true }).waitFor();
      await expect.poll(() => focusedLabel(page)).toBe("Message");
      await look();
      await expect.poll(() => focusedLabel(page)).toBe("Message");
    }
  });

  test("reads the usage, and goes from a day and from an agent to their sessions", async () => {
    const sessionKey = "agent:support:kitchen";
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "repeat soup",
      idempotencyKey: "soup",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const page = await browser.open(gateway, "/");
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await goTo(page, "Usage");
    const table = page.getByRole("table");
    await table.getByRole("link").first().waitFor();
    await tabTo(page, "ol[aria-label='Tokens by day'] a");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Sessions: \d{4}-/ }).waitFor();
    await expect.poll(() => focusedLabel(page)).not.toBe("");
    await tabTo(page, "h2 a");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Sessions: / }).waitFor({ state: "detached" });
    await tabTo(page, "select[aria-label=By]", "Shift+Tab");
    await page.keyboard.press("a");
    await table.getByRole("link", { name: "support" }).waitFor();
    expect(page.url()).toContain("by=agent");
    await tabTo(page, "table a[href*='agent=support']");
    await page.keyboard.press("Enter");
    await table.getByRole("link", { name: "kitchen" }).waitFor();
    await tabTo(page, "table a[href*=kitchen]");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Session kitchen", exact: true }).waitFor();
  });

  test("goes through the graph of a family: to a session, along an arrow, and to its size", async () => {
    const sessionKey = "agent:support:terrace";
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "spawn one helper to repeat hello",
      idempotencyKey: "graph",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const page = await browser.open(gateway, sessionRoute(sessionKey, "family"));
    await page.getByRole("tab", { name: "Lanes" }).waitFor();
    await tabTo(page, "[role=tab]");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    const box = ".react-flow__node a";
    await expect.poll(() => page.locator(box).count()).toBe(2);
    await expect.poll(() => page.locator(".react-flow__edge a").count()).toBe(1);
    await tabTo(page, ".react-flow__edge a");
    await page.keyboard.press("Enter");
    await page.locator("[data-entry-id][data-target]").waitFor();
    await page.goBack();
    await expect.poll(() => page.locator(box).count()).toBe(2);
    await tabTo(page, `${box}[href*=subagent]`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Session helper/ }).waitFor();
    await page.goBack();
    await expect.poll(() => page.locator(box).count()).toBe(2);
    const scale = () => page.locator(".react-flow__viewport").getAttribute("style");
    const before = await scale();
    await tabTo(page, ".react-flow__controls-zoomout");
    await page.keyboard.press("Enter");
    await expect.poll(scale).not.toBe(before);
  });

  test("works without single-letter keys, which can be switched off", async () => {
    const page = await browser.open(gateway, "/sessions");
    await page.getByRole("main").getByRole("link", { name: "garden" }).waitFor();
    await goTo(page, "Switch single-letter keys off");
    await tabTo(page, row);
    const first = await focusedName(page);
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    expect(await focusedName(page)).toBe(first);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focusedName(page)).not.toBe(first);
    expect(await page.getByText(selectedText).count()).toBe(0);
    await goTo(page, "Switch single-letter keys on");
    await tabTo(page, row);
    await page.keyboard.press("x");
    await page.getByText(selectedText).first().waitFor();
  });
});

describe.skipIf(browser === null)("two browsers at once", () => {
  test("see the same entries, in the same order, on a computer, a phone and a tablet", async () => {
    const route = sessionRoute("agent:support:garden");
    const pages = await Promise.all([
      browser.open(gateway, route),
      browser.open(gateway, route, { width: 360, height: 740, hasTouch: true }),
      browser.open(gateway, route, { width: 1024, height: 740, hasTouch: true }),
    ]);
    // The keyboard of a phone stays closed until the reader wants to write.
    for (const page of pages) await page.getByRole("textbox", { name: "Message" }).waitFor();
    await expect.poll(() => Promise.all(pages.map(focusedLabel))).toEqual(["Message", "", ""]);
    for (const [index, page] of pages.entries()) {
      await page.getByRole("textbox", { name: "Message" }).fill(`repeat number ${index}`);
      await page.keyboard.press("Enter");
      for (const each of pages)
        await each.locator("[data-entry-id][data-kind=agent]", { hasText: `number ${index}` }).waitFor();
    }
    const { entries } = await gateway.call("sessions.entries", { key: "agent:support:garden", limit: 100 });
    const stored = entries.filter(({ type }) => type === "message").map(({ id }) => id);
    expect(stored).toHaveLength(2 * pages.length);
    for (const page of pages) await expect.poll(() => shownEntries(page)).toEqual(stored);
    // The sidebar marks only this session, and its rows are large enough to tap.
    const current = pages.at(-1)?.getByRole("complementary").locator("li [aria-current]");
    await expect.poll(() => current?.allInnerTexts()).toEqual([expect.stringContaining("garden")]);
    await expect.poll(async () => (await current?.boundingBox())?.height).toBe(44);
  });
});

describe.skipIf(browser === null)("a part of the console that cannot be loaded", () => {
  test("leaves the other pages as they are, and is loaded again on request", async () => {
    const page = await browser.open(gateway, sessionRoute("agent:support:kitchen"));
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await page.route(/usage-page/, (route) => route.abort());
    await page.getByRole("link", { name: "Usage" }).click();
    await page.getByText("This page cannot be shown").waitFor();
    await page.getByRole("link", { name: "Search" }).click();
    await page.getByRole("searchbox").waitFor();
    await page.getByRole("link", { name: "Usage" }).click();
    await page.getByText("This page cannot be shown").waitFor();
    await page.unroute(/usage-page/);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Unpriced").first().waitFor();
    expect(browser.problems.splice(0).join()).toContain("could not be loaded");
  });
});
