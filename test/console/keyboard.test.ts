import { readFileSync } from "node:fs";
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
    await tabTo(page, "nav[aria-label='Landmarks in the session'] button", "Shift+Tab");
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
    const { runId: first } = await ask("rooms");
    await questions.getByText("rooms").waitFor();
    // A question that has just arrived does not react yet.
    await questions.locator("[data-act=approve]:not([aria-disabled])").waitFor();
    await tabTo(page, "[data-act=approve]");
    await page.keyboard.press("Enter");
    await questions.waitFor({ state: "detached" });
    await expect.poll(() => focusedLabel(page)).toBe("Transcript");

    await gateway.call("agent.wait", { runId: first, timeoutMs: 150_000 });

    // The next question is shown immediately.
    const { runId: second } = await ask("chairs");
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
    await gateway.call("agent.wait", { runId: second, timeoutMs: 150_000 });

    await page.keyboard.press("Control+f");
    await expect.poll(() => focusedLabel(page)).toBe("Find in session");
    await page.keyboard.type("chairs");
    await tabTo(page, composer);
    await page.keyboard.press("Control+f");
    await expect.poll(() => focusedLabel(page)).toBe("Find in session");
    await page.keyboard.press("Escape");
    await expect.poll(() => focusedLabel(page)).toBe("Transcript");
    await page.keyboard.press("/");
    await expect.poll(() => focusedLabel(page)).toBe("Find in session");
    await page.keyboard.press("Escape");
    await expect.poll(() => focusedLabel(page)).toBe("Transcript");

    // A fold is opened and closed, and keeps the focus.
    const isFolded = () => page.evaluate(() => document.activeElement?.closest("details")?.open === false);
    await tabTo(page, "[data-entry-id] summary");
    for (const folded of [false, true]) {
      await page.keyboard.press("Enter");
      await expect.poll(isFolded).toBe(folded);
    }

    await tabTo(page, "a[href$=tree]", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("tree").waitFor();
    await tabTo(page, "[role=tree]");
    await page.keyboard.press("l");
    await expect.poll(() => focusedLabel(page)).toBe("Label for this entry");
    await page.keyboard.type("furniture");
    await page.keyboard.press("Enter");
    await page.getByRole("tree").getByText("furniture").waitFor();
    await expect.poll(() => focusedLabel(page)).toBe("Entries on all branches");
  });

  test("compares two branches in the tree, reads one, continues from it and takes that back", async () => {
    const key = "agent:support:branches";
    const say = async (text: string) => {
      const params = { key, message: `repeat ${text}`, idempotencyKey: text, timeoutMs: 150_000 };
      await gateway.call("sessions.send", params);
    };
    const leaf = async () => (await gateway.call("sessions.get", { key })).leafId ?? null;
    await say("the beginning");
    const from = await leaf();
    await say("the north");
    await gateway.call("sessions.branch", { key, entryId: from });
    await say("the south");
    const before = await leaf();
    const page = await browser.open(gateway, sessionRoute(key));
    await page.getByText("the south").first().waitFor();
    await tabTo(page, "a[href$=tree]", "Shift+Tab");
    await page.keyboard.press("Enter");
    const selected = page.getByRole("treeitem", { selected: true });
    const goNorth = async () => {
      await tabTo(page, "[role=tree]");
      await page.keyboard.press("Home");
      await expect.poll(() => selected.innerText()).toContain("repeat the beginning");
      for (let text = ""; !text.includes("repeat the north"); ) {
        text = await selected.innerText();
        await page.keyboard.press("ArrowDown");
        await expect.poll(() => selected.innerText()).not.toBe(text);
        text = await selected.innerText();
      }
    };
    await goNorth();
    await page.keyboard.press("c");
    const comparison = page.getByRole("region", { name: "Comparison of two branches" });
    await comparison.getByText("repeat the north").waitFor();
    await comparison.getByText("repeat the south").waitFor();
    await page.keyboard.press("Escape");
    await comparison.waitFor({ state: "detached" });
    await goNorth();
    await page.keyboard.press("Enter");
    await page.getByText("You are reading another branch").first().waitFor();
    expect(await leaf()).toBe(before);
    await tabTo(page, "a[href$=tree]", "Shift+Tab");
    await page.keyboard.press("Enter");
    await goNorth();
    await page.keyboard.press("b");
    await page.getByText("The conversation continues from").first().waitFor();
    await expect.poll(leaf).not.toBe(before);
    await page.keyboard.press("u");
    await expect.poll(leaf).toBe(before);
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

  test("goes through the lanes of a family, and along an arrow to its entry", async () => {
    const sessionKey = "agent:support:lanes";
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "spawn one helper to repeat hello",
      idempotencyKey: "lanes",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const page = await browser.open(gateway, sessionRoute(sessionKey, "family"));
    const arrow = /^Spawn: /;
    await expect.poll(() => page.getByRole("link", { name: arrow }).count()).toBeGreaterThan(0);
    await tabTo(page, "svg [data-mark]");
    for (let steps = 0; steps < 20 && !arrow.test(await focusedLabel(page)); steps += 1)
      await page.keyboard.press(steps % 2 === 0 ? "ArrowLeft" : "ArrowDown");
    expect(await focusedLabel(page)).toMatch(arrow);
    await page.keyboard.press("Enter");
    await page.locator("[data-entry-id][data-target]").waitFor();
  });

  test("opens the rules of a cell in the access matrix", async () => {
    const page = await browser.open(gateway, "/access");
    await page.getByRole("table").waitFor();
    await tabTo(page, "[data-place]");
    const first = await focusedLabel(page);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focusedLabel(page)).not.toBe(first);
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    const rules = page.getByRole("complementary", { name: "Rules" });
    await rules.getByRole("listitem").first().waitFor();
    await page.keyboard.press("Escape");
    await rules.waitFor({ state: "detached" });

    // Red is only for failures.
    await page.goto(`${gateway.url}/#/access?from=agent:support:garden&to=agent:support:kitchen`);
    const refused = rules.locator("[data-allowed=false]").first();
    await expect.poll(() => refused.innerText()).toBe("× refused");
    const colorOf = (element: Element) => getComputedStyle(element).color;
    expect(await refused.evaluate(colorOf)).toBe(await page.locator("body").evaluate(colorOf));
  });

  test("creates and revokes a token, and opens the code for a phone", async () => {
    const page = await browser.open(gateway, "/access?tab=tokens");
    await page.getByRole("table").waitFor();
    const focusOn = async (text: string) => {
      for (let presses = 0; presses < 80 && (await focusedName(page)) !== text; presses += 1)
        await page.keyboard.press("Tab");
      expect(await focusedName(page)).toBe(text);
    };
    await focusOn("Create a token…");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").waitFor();
    await page.keyboard.type("made by keys");
    await tabTo(page, "[role=dialog] button[type=submit]");
    await page.keyboard.press("Enter");
    await dialog.getByText("Copy it now.").waitFor();
    await dialog.locator("[aria-label='Copy the token']:focus").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => focusedName(page)).toBe("Create a token…");
    await page.getByRole("row", { name: /made by keys/ }).waitFor();
    const isListed = async () => {
      const { tokens } = await gateway.call("tokens.list", {});
      return tokens.some(({ label, revokedAt }) => label === "made by keys" && revokedAt === undefined);
    };
    expect(await isListed()).toBe(true);
    await focusOn("Revoke");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedName(page)).toBe("Revoke permanently");
    await page.keyboard.press("Enter");
    await expect.poll(isListed).toBe(false);

    await page.reload();
    await page.getByRole("table").waitFor();
    await focusOn("Open on a phone…");
    await page.keyboard.press("Enter");
    await dialog.getByRole("img", { name: "QR code for the link" }).waitFor();
    await tabTo(page, "[aria-label='Copy the link']");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => focusedName(page)).toBe("Open on a phone…");
  });

  test("works without single-letter keys, which can be switched off", async () => {
    const page = await browser.open(gateway, "/sessions");
    await page.getByRole("main").getByRole("link", { name: "garden" }).waitFor();
    await goTo(page, "Turn single-letter keys off");
    await tabTo(page, row);
    const first = await focusedName(page);
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    expect(await focusedName(page)).toBe(first);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focusedName(page)).not.toBe(first);
    expect(await page.getByText(selectedText).count()).toBe(0);
    await goTo(page, "Turn single-letter keys on");
    await tabTo(page, row);
    await page.keyboard.press("x");
    await page.getByText(selectedText).first().waitFor();
  });

  test("shows the keys of the table in the manual on the buttons that they press", async () => {
    const key = "agent:main:keys";
    for (const message of ["repeat one", "repeat two"]) {
      const { runId } = await gateway.call("chat.send", {
        sessionKey: key,
        message,
        idempotencyKey: message,
      });
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
      await gateway.call("sessions.branch", { key, entryId: null });
    }
    const { runId } = await gateway.call("chat.send", {
      sessionKey: "agent:main:asks",
      message: "search for keys",
      idempotencyKey: "keys",
    });
    const page = await browser.open(gateway, "/");
    const main = page.getByRole("main");
    const shown = new Set<string>();
    const shows = async (name: RegExp, text: string) => {
      const button = page.getByRole("button", { name }).filter({ has: page.locator("kbd") });
      await expect.poll(() => button.last().locator("kbd").allInnerTexts()).toEqual([text]);
      shown.add(text);
    };
    await shows(/^Go to…/, "Ctrl+K");
    await shows(/^Send/, "↵");
    await shows(/^Find/, "Ctrl+F");
    await page.keyboard.press("Control+f");
    await shows(/^Earlier match/, "↵");
    await shows(/^Later match/, "⇧+↵");
    await shows(/^Close/, "Esc");

    await goTo(page, "Sessions");
    await main.getByRole("link", { name: "garden" }).waitFor();
    await shows(/^Approve/, "a");
    await shows(/^Deny…/, "d");
    await page.keyboard.press("d");
    await shows(/^Deny/, "↵");
    await shows(/^Cancel/, "Esc");
    await page.keyboard.press("Escape");
    await main.getByRole("link", { name: "terrace" }).focus();
    await page.keyboard.press("x");
    await shows(/^Clear/, "Esc");
    await shows(/^Archive/, "e");
    await page.keyboard.press("e");
    await shows(/^Undo/, "z");
    await page.keyboard.press("z");

    await page.goto(`${gateway.url}/#/runs?show=all`);
    await main.getByText("repeat one").first().waitFor();
    await page.keyboard.press("x");
    await shows(/^Abort/, "a");
    await shows(/^Retry/, "r");

    await page.goto(`${gateway.url}/#${sessionRoute(key, "family")}`);
    for (const [name, text] of [
      [/^Zoom in/, "+"],
      [/^Zoom out/, "-"],
      [/^Fit/, "0"],
    ] as const)
      await shows(name, text);

    await page.goto(`${gateway.url}/#${sessionRoute(key, "tree")}`);
    await shows(/^Next branch/, "n");
    await page.keyboard.press("n");
    await shows(/^Compare/, "c");
    await shows(/^Label/, "l");
    await shows(/^Continue from here/, "b");
    await page.keyboard.press("b");
    await shows(/^Undo/, "u");

    await page.goto(`${gateway.url}/#${sessionRoute("agent:main:asks")}`);
    await shows(/^Queue/, "Alt+↵");
    await gateway.call("runs.abort", { runId });

    // Other keys for the same buttons, and keys that have no button.
    const withoutButton = ["⌘K", "⌘F", "/", "Shift+↵", "↑", "↓", "x"];
    const manual = readFileSync("docs/console.md", "utf8")
      .split("\n## ")
      .find((part) => part.startsWith("Keys"));
    const keys = [...(manual ?? "").matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = ""]) =>
      cell.split(/[, ]+/),
    );
    expect(keys.length).toBeGreaterThan(20);
    const named = keys.slice(1).map((each) => each.replace("Enter", "↵").replace("Escape", "Esc"));
    expect(named.filter((each) => !withoutButton.includes(each) && !shown.has(each))).toEqual([]);
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
