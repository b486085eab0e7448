import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway } = await useConsole();
const key = "agent:main:main";
let gateway: GatewayProcess;
let sent = 0;

beforeAll(async () => {
  gateway = await startGateway({
    config: `agents:
  main: { model: rehearsal/basic, tools: { ask: [session_search] }, subagents: { maxSpawnDepth: 2 } }
`,
  });
});

const open = (view: string, query: Record<string, string> = {}) =>
  browser.open(gateway, sessionRoute(key, view, query));

async function say(message: string): Promise<void> {
  sent += 1;
  await gateway.call("sessions.send", { key, message, idempotencyKey: `say ${sent}`, timeoutMs: 120_000 });
}

const leaf = async () => (await gateway.call("sessions.get", { key })).leafId;
const lanes = (page: Page) =>
  page.getByRole("list", { name: "Sessions in the family" }).getByRole("listitem");
const row = (page: Page, text: string) => page.getByRole("treeitem").filter({ hasText: text }).first();

describe.skipIf(browser === null)("a family in the console", () => {
  test("grows a lane for each helper while they are spawned, and an arrow leads to its entry", async () => {
    await say("hello");
    const page = await open("family");
    await expect.poll(() => lanes(page).count()).toBe(1);
    await say(
      "spawn three helpers to describe the garden; compare two menus; plan a day by the sea and summarize",
    );
    await expect.poll(() => lanes(page).count()).toBe(4);
    const arrows = page.getByRole("link", { name: /^Result: .* → main/ });
    // Until its own entry exists, an arrow links to the entry that caused it.
    const target = `#${sessionRoute(key)}?entry=`;
    const isArrived = (links: Element[], start: string) =>
      links.filter((link) => link.getAttribute("href")?.startsWith(start)).length;
    await expect.poll(() => arrows.evaluateAll(isArrived, target)).toBe(3);
    const entryOf = (href: string | null) => {
      const entryId = new URLSearchParams(href?.split("?")[1]).get("entry");
      return page.locator(`[data-entry-id="${entryId}"][data-target]`);
    };
    const first = entryOf(await arrows.first().getAttribute("href"));
    await arrows.first().press("Enter");
    await first.waitFor();
    await page.goBack();
    // Two arrows can end at the same point. The one on top can be clicked.
    const isOnTop = (circle: Element) => {
      const { x, y, width, height } = circle.getBoundingClientRect();
      const found = document.elementFromPoint(x + width / 2, y + height / 2);
      return found?.closest("a") === circle.closest("a");
    };
    const circles = arrows.locator("circle");
    const onTop = async () => Promise.all((await circles.all()).map((each) => each.evaluate(isOnTop)));
    await expect.poll(onTop).toContain(true);
    const circle = circles.nth((await onTop()).indexOf(true));
    const clicked = entryOf(await circle.evaluate((each) => each.closest("a")?.getAttribute("href") ?? null));
    await circle.click();
    await clicked.waitFor();
  });

  test("draws each arrow from the spawn to the beginning of the run, and from its end back to the parent", async () => {
    const page = await open("family");
    await expect.poll(() => lanes(page).count()).toBe(4);
    const box = async (name: RegExp, shape: string) => {
      const bounds = await page.getByRole("link", { name }).locator(shape).last().boundingBox();
      const { x = 0, width = 0 } = bounds ?? {};
      return { left: x, right: x + width, middle: x + width / 2 };
    };
    /** Returns what is not where it belongs. The lanes can still move while the page loads. */
    const findMisplaced = async () => {
      const misplaced: string[] = [];
      const sources = new Set<number>();
      for (const helper of ["helper-1", "helper-2", "helper-3"]) {
        const run = await box(new RegExp(`^${helper}.*: done`), "rect");
        const spawn = await box(new RegExp(`^Spawn: main → ${helper}`), "path");
        const result = await box(new RegExp(`^Result: ${helper}.* → main`), "circle");
        const source = await box(new RegExp(`^Spawn: main → ${helper}`), "circle");
        if (Math.abs(run.left - spawn.right) >= 3) misplaced.push(`the end of the spawn of ${helper}`);
        if (Math.abs(run.right - result.middle) >= 3) misplaced.push(`the result of ${helper}`);
        if (source.middle >= run.left) misplaced.push(`the spawn of ${helper}`);
        sources.add(Math.round(source.middle));
      }
      return sources.size === 3 ? misplaced : [...misplaced, "two spawns"];
    };
    await expect.poll(findMisplaced).toEqual([]);
  });
});

describe.skipIf(browser === null)("the lanes of a family", () => {
  test("are magnified for as long as a key is held, and fit into the view again at the press of another", async () => {
    const page = await open("family");
    const zoomOut = page.getByRole("button", { name: "Zoom out" });
    await page.locator("svg [data-mark]").first().waitFor();
    await expect.poll(() => zoomOut.isDisabled()).toBe(true);
    for (let steps = 0; steps < 3; steps += 1) await page.keyboard.down("+");
    await page.keyboard.up("+");
    for (let steps = 0; steps < 3; steps += 1) {
      await expect.poll(() => zoomOut.isDisabled()).toBe(false);
      await page.keyboard.press("-");
    }
    await expect.poll(() => zoomOut.isDisabled()).toBe(true);
    for (let steps = 0; steps < 3; steps += 1) await page.keyboard.press("=");
    await expect.poll(() => zoomOut.isDisabled()).toBe(false);
    await page.keyboard.press("0");
    await expect.poll(() => zoomOut.isDisabled()).toBe(true);
  });
});

describe.skipIf(browser === null)("helpers at work in the console", () => {
  test("are lanes that grow side by side, until they are aborted", async () => {
    const task = "in 300 seconds";
    const page = await browser.open(gateway, sessionRoute("agent:main:work", "family"));
    await page.getByRole("tab", { name: "Lanes" }).waitFor();
    await gateway.call("chat.send", {
      sessionKey: "agent:main:work",
      message: `spawn three helpers to describe the hall ${task}; compare two lamps ${task}; plan a walk ${task} and summarize`,
      idempotencyKey: "grow",
    });
    await expect.poll(() => lanes(page).filter({ hasText: "running" }).count()).toBe(3);
    const spans = page.locator("a[data-tone=running] rect:nth-of-type(2)");
    await expect.poll(() => spans.count()).toBe(3);
    const ends = () => spans.evaluateAll((rects) => rects.map((rect) => Number(rect.getAttribute("width"))));
    const before = await ends();
    await expect.poll(async () => (await ends()).every((width, index) => width !== before[index])).toBe(true);
    const { runs } = await gateway.call("runs.list", { states: ["running"] });
    for (const { runId } of runs) await gateway.call("runs.abort", { runId });
    await expect.poll(() => lanes(page).filter({ hasText: "aborted" }).count()).toBe(3);
  });
});

describe.skipIf(browser === null)("a failed run in the console", () => {
  test("is a red span with a cross in its lane, in light and dark and on a phone", async () => {
    const sessionKey = "agent:main:broken";
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "spawn two helpers to fail with status 400; describe the cellar and summarize",
      idempotencyKey: "broken",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    for (const options of [{}, { isDark: true, width: 360, height: 740 }]) {
      const page = await browser.open(gateway, sessionRoute(sessionKey, "family"), options);
      await expect
        .poll(() => lanes(page).allInnerTexts())
        .toEqual([
          "main:broken",
          expect.stringMatching(/^helper-1 \(3\) fail with status 400\s+failed$/),
          "helper-2 (3) describe the cellar",
        ]);
      const mark = page.locator("a[data-tone=failed]");
      await expect.poll(() => mark.locator("path").count()).toBe(1);
      const [fill, red] = await mark
        .locator("rect")
        .last()
        .evaluate((rect) => {
          const probe = document.body.appendChild(document.createElement("i"));
          probe.style.setProperty("color", "var(--red)");
          return [getComputedStyle(rect).fill, getComputedStyle(probe).color];
        });
      expect(fill).toBe(red);
    }
  });
});

describe.skipIf(browser === null)("a helper that waits for an approval", () => {
  test("is an amber span in the family of its parent until it is answered", async () => {
    const sessionKey = "agent:main:asking";
    const page = await browser.open(gateway, sessionRoute(sessionKey, "family"));
    await gateway.call("chat.send", {
      sessionKey,
      message: "spawn one helper to search for lamps",
      idempotencyKey: "asking",
    });
    const mark = page.locator("a[data-tone=needs-you]");
    await expect.poll(() => mark.getAttribute("aria-label")).toMatch(/^helper-1.*: needs you/);
    await expect.poll(() => mark.locator("rect").count()).toBe(4);
    await lanes(page).filter({ hasText: "needs you" }).waitFor();
    const { approvals } = await gateway.call("approvals.list", { open: true });
    for (const { approvalId } of approvals)
      await gateway.call("approvals.resolve", { approvalId, answer: "approved" });
    await mark.waitFor({ state: "detached" });
  });
});

describe.skipIf(browser === null)("a session that sleeps until its helpers have ended", () => {
  test("can be stopped", async () => {
    const sessionKey = "agent:main:asleep";
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message:
        "spawn two helpers to describe the attic in 300 seconds; plan a nap in 300 seconds and summarize",
      idempotencyKey: "asleep",
    });
    const state = async () =>
      (await gateway.call("runs.list", { sessionKey })).runs.find((run) => run.runId === runId)?.state;
    const page = await browser.open(gateway, sessionRoute(sessionKey));
    await expect.poll(state).toBe("sleeping");
    await page.getByRole("button", { name: "Send" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(state).toBe("aborted");
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
    const { runs } = await gateway.call("runs.list", { states: ["queued", "running"] });
    for (const helper of runs) await gateway.call("runs.abort", { runId: helper.runId });
  });
});

describe.skipIf(browser === null)("the tree in the console", () => {
  test("reads and compares another branch without moving the leaf, and moves it with undo", async () => {
    const from = await leaf();
    await say("describe the north garden");
    await gateway.call("sessions.branch", { key, entryId: from ?? null });
    await say("describe the south garden");
    const before = await leaf();
    const page = await open("tree");

    await row(page, "describe the north garden").click();
    await page.keyboard.press("c");
    await page.getByRole("region", { name: "Comparison of two branches" }).waitFor();
    await expect.poll(() => page.getByText("the north garden").count()).toBeGreaterThan(0);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Read" }).click();
    await page.getByText("You are reading another branch").first().waitFor();
    expect(await leaf()).toBe(before);

    await page.goBack();
    await row(page, "describe the north garden").click();
    await page.keyboard.press("b");
    await page.getByText("The conversation continues from").first().waitFor();
    await expect.poll(leaf).not.toBe(before);
    const moved = await leaf();
    await page.keyboard.press("u");
    await expect.poll(leaf).toBe(before);

    // The way back is in the transcript too, until the conversation changes.
    await page.getByRole("button", { name: "Continue from here" }).click();
    await expect.poll(leaf).toBe(moved);
    await page.getByRole("link", { name: "Transcript" }).click();
    await page.getByText("The conversation continues from").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(leaf).toBe(before);
    await page.getByText("The conversation continues from").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Tree" }).click();
    await row(page, "describe the north garden").click();
    await page.getByRole("button", { name: "Continue from here" }).click();
    await expect.poll(leaf).toBe(moved);
    await page.getByRole("link", { name: "Transcript" }).click();
    await page.getByText("The conversation continues from").waitFor();
    await say("describe the north gate");
    await page.getByText("The conversation continues from").waitFor({ state: "detached" });
    await gateway.call("sessions.branch", { key, entryId: before ?? null });
  });

  test("has links between three branches in the transcript, and compares only what two of them do not share", async () => {
    const sessionKey = "agent:main:three-branches";
    const add = async (method: "chat.send" | "chat.inject", message: string) => {
      const { runId } = await gateway.call(method, { sessionKey, message, idempotencyKey: message });
      await gateway.call("agent.wait", { runId, timeoutMs: 120_000 });
    };
    await add("chat.send", "repeat what all branches share");
    const { leafId } = await gateway.call("sessions.get", { key: sessionKey });
    for (const name of ["first", "second", "third"]) {
      await gateway.call("sessions.branch", { key: sessionKey, entryId: leafId ?? null });
      await add("chat.inject", `The ${name} way`);
    }
    const page = await browser.open(gateway, sessionRoute(sessionKey));
    const shown = (name: string) => page.locator("[data-entry-id]", { hasText: `The ${name} way` });
    await shown("third").getByText("3/3", { exact: true }).waitFor();
    expect(await shown("third").getByRole("link", { name: "Next branch" }).count()).toBe(0);
    await shown("third").getByRole("link", { name: "Previous branch" }).click();
    await shown("second").getByText("2/3", { exact: true }).waitFor();
    await shown("third").waitFor({ state: "detached" });
    await shown("second").getByRole("link", { name: "Previous branch" }).click();
    await shown("first").getByText("1/3", { exact: true }).waitFor();
    expect(await shown("first").getByRole("link", { name: "Previous branch" }).count()).toBe(0);
    await shown("first").getByRole("link", { name: "Next branch" }).click();
    await shown("second").getByRole("link", { name: "Next branch" }).click();
    await shown("third").getByText("3/3", { exact: true }).waitFor();

    await page.getByRole("link", { name: "Tree" }).click();
    await row(page, "The first way").click();
    // The tree has the color that the session has in the list.
    const thread = (selector: string) => page.locator(selector).first().getAttribute("data-thread");
    await expect
      .poll(
        async () =>
          (await thread("main section[data-thread]")) === (await thread("a[data-part][aria-current]")),
      )
      .toBe(true);
    await page.keyboard.press("c");
    const comparison = page.getByRole("region", { name: "Comparison of two branches" });
    const compared = comparison.locator("[data-entry-id]");
    await expect.poll(() => compared.count()).toBe(2);
    const texts = async () => (await compared.allInnerTexts()).join();
    await expect.poll(texts).toMatch(/The first way.*The third way/s);
    expect(await texts()).not.toContain("what all branches share");
  });

  test("has arrows between branches that a finger can hit", async () => {
    const page = await browser.open(gateway, sessionRoute(key, "tree"), {
      width: 360,
      height: 740,
      hasTouch: true,
    });
    const south = row(page, "describe the south garden");
    const previous = south.getByRole("button", { name: "Previous branch" });
    await expect.poll(() => previous.boundingBox()).toMatchObject({ width: 44, height: 44 });
    await previous.tap();
    const north = row(page, "describe the north garden");
    await expect.poll(() => north.getAttribute("aria-selected")).toBe("true");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  });

  test("compares a long branch with a short one on a phone without printing them over each other", async () => {
    const sessionKey = "agent:main:uneven";
    const add = async (method: "chat.send" | "chat.inject", message: string) => {
      const { runId } = await gateway.call(method, { sessionKey, message, idempotencyKey: message });
      await gateway.call("agent.wait", { runId, timeoutMs: 120_000 });
    };
    await add("chat.send", "hello");
    const { leafId } = await gateway.call("sessions.get", { key: sessionKey });
    for (let index = 0; index < 20; index += 1) await add("chat.inject", `Long note ${index}`);
    await gateway.call("sessions.branch", { key: sessionKey, entryId: leafId ?? null });
    await add("chat.inject", "The short note");
    const page = await browser.open(gateway, sessionRoute(sessionKey, "tree"), { width: 360, height: 740 });
    await row(page, "Long note 0").click();
    await page.keyboard.press("c");
    const entries = page
      .getByRole("region", { name: "Comparison of two branches" })
      .locator("[data-entry-id]");
    await expect.poll(() => entries.count()).toBe(21);
    /** How far each row reaches into the next one. */
    const overlaps = () =>
      entries.evaluateAll((rows) => {
        const boxes = rows.map((each) => each.getBoundingClientRect()).sort((a, b) => a.top - b.top);
        return boxes.slice(1).map(({ top }, index) => Math.max(0, (boxes[index]?.bottom ?? 0) - top));
      });
    await expect.poll(overlaps).toEqual(Array.from({ length: 20 }, () => 0));
  });

  test("labels an entry", async () => {
    const page = await open("tree");
    // Roles have different shapes. A message is a square, and an answer is a circle.
    const shapes = (shape: string) => page.getByRole("treeitem").locator(`svg ${shape}`).count();
    await expect.poll(() => shapes("rect")).toBeGreaterThan(0);
    await expect.poll(() => shapes("circle")).toBeGreaterThan(0);
    await row(page, "describe the south garden").click();
    await page.getByRole("button", { name: "Label" }).click();
    await page.getByRole("textbox", { name: "Label for this entry" }).fill("favorite");
    await page.keyboard.press("Enter");
    await expect.poll(() => row(page, "describe the south garden").textContent()).toContain("favorite");
    const labeled = async () => {
      const { entries } = await gateway.call("sessions.tree", { key });
      return entries.find(({ label }) => label === "favorite")?.preview;
    };
    await expect.poll(labeled).toContain("describe the south garden");
  });

  test("shows the new conversation after a reset", async () => {
    const page = await open("tree");
    await row(page, "describe the south garden").waitFor();
    await gateway.call("sessions.reset", { key });
    await row(page, "describe the south garden").waitFor({ state: "detached" });
    await say("describe the roof garden");
    await row(page, "describe the roof garden").waitFor();
  });
});
