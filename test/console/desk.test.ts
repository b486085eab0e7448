import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const browser = (await ConsoleBrowser.launch()) as ConsoleBrowser;
const home = temporaryFolder("skein-console-");
let gateway: GatewayProcess;

const config = `agents:
  main: { model: rehearsal/basic, tools: { ask: [session_search] }, subagents: { maxSpawnDepth: 3 } }
  support: { model: rehearsal/basic }
tools: { sessions: { visibility: all }, agentToAgent: { enabled: true } }
`;

beforeAll(async () => {
  gateway = await GatewayProcess.start(home.path, { config });
  for (let index = 0; index < 30; index += 1) {
    const key = `agent:${index % 2 === 0 ? "main" : "support"}:note-${index}`;
    await gateway.call("sessions.create", { key, label: `note ${index}` });
  }
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop("SIGKILL");
  home.remove();
});
afterEach(() => browser?.closePages());

const open = () => browser.open(gateway, "/sessions");
const table = (page: Page) => page.getByRole("main").getByRole("list", { name: "Sessions" });
const names = (page: Page) => table(page).locator("[data-line]").allInnerTexts();

describe.skipIf(browser === null)("the desk of the console", () => {
  test("shows an approval three levels down with its path, and drops it in every browser once it is answered", async () => {
    const pages = await Promise.all([open(), open()]);
    await gateway.call("chat.send", {
      sessionKey: "agent:main:main",
      message: "spawn one helper to spawn one helper to search for rooms",
      idempotencyKey: "three levels",
    });
    for (const page of pages) {
      const line = table(page).locator("li", { hasText: "session_search" });
      await line.waitFor();
      expect((await line.innerText()).split("›").length).toBe(3);
    }
    await pages[0]?.getByRole("main").getByRole("button", { name: "Approve" }).first().click();
    for (const page of pages) await table(page).getByText("session_search").waitFor({ state: "detached" });
    const { approvals } = await gateway.call("approvals.list", {});
    expect(approvals.filter(({ answer }) => answer === undefined)).toEqual([]);
  });

  test("filters by agent and text, and shows the same after a reload", async () => {
    const page = await open();
    await page.getByLabel("Agent", { exact: true }).selectOption("support");
    await page.getByLabel("Filter by name, label or key").fill("note 2");
    const expected = ["note 21", "note 23", "note 25", "note 27", "note 29"];
    await expect.poll(async () => (await names(page)).sort()).toEqual(expected);
    await page.reload();
    await expect.poll(async () => (await names(page)).sort()).toEqual(expected);
  });

  test("selects by key, archives, and takes it back", async () => {
    const page = await browser.open(gateway, "/sessions?q=note+1");
    await expect.poll(async () => (await names(page)).length).toBe(11);
    const [first] = await names(page);
    await table(page).locator("[data-line]").first().focus();
    await page.keyboard.press("x");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("x");
    await page.getByText("2 sessions selected").first().waitFor();
    await page.keyboard.press("e");
    await page.getByText("2 sessions are archived.").first().waitFor();
    await expect.poll(async () => (await names(page)).length).toBe(9);
    expect(await names(page)).not.toContain(first);
    await page.getByRole("button", { name: /^Undo/ }).click();
    await page.getByText("2 sessions are in the list again.").first().waitFor();
    await expect.poll(async () => (await names(page)).length).toBe(11);
  });

  test("does not move rows under the pointer", async () => {
    const page = await open();
    await expect.poll(async () => (await names(page)).length).toBeGreaterThan(10);
    const row = table(page).locator("[data-line]").nth(3);
    const name = await row.innerText();
    await row.hover();
    const box = await row.boundingBox();
    const { runId } = await gateway.call("chat.send", {
      sessionKey: "agent:support:note-9",
      message: "repeat hello",
      idempotencyKey: "move up",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    // The row of the session that has answered is read again: its tokens appear.
    await expect
      .poll(() => table(page).locator("li", { hasText: "note 9" }).first().innerText())
      .toMatch(/\d/);
    expect(await row.innerText()).toBe(name);
    expect(await row.boundingBox()).toEqual(box);
    await page.mouse.move(5, 5);
    await expect.poll(async () => (await names(page))[0]).not.toBe(undefined);
  });
});
