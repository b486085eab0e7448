import type { Locator } from "playwright-core";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { assistantMessage, sessionText, userLine } from "../support/session-text.ts";
import type { PageOptions } from "./console-browser.ts";
import { sessionRoute, settled } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway } = await useConsole();
let gateway: GatewayProcess;
let sessions = 0;
let options: PageOptions = {};

beforeAll(async () => {
  gateway = await startGateway({ config: "agents: { main: { model: rehearsal/basic } }\n" });
});
beforeEach(() => {
  options = {};
});

/** Imports a session and opens it. */
async function openSession(...lines: Parameters<typeof sessionText>) {
  const id = `rail-${++sessions}`;
  const key = `agent:main:${id}`;
  const content = sessionText(...lines).replace('"id":"s"', `"id":"${id}"`);
  await gateway.call("sessions.import", { key, files: [{ name: "a.jsonl", content }] });
  return browser.open(gateway, sessionRoute(key), options);
}

const isInView = (row: Locator) =>
  row.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });

describe.skipIf(browser === null)("the thread rail of a session", () => {
  test("goes to an entry that is not mounted when its mark on the thread rail is clicked", async () => {
    const notes = Array.from({ length: 60 }, (_, index) => `n${index}`);
    const page = await openSession(
      userLine("first", null, "begin"),
      ...notes.map((id, index) =>
        userLine(id, notes[index - 1] ?? "first", `Note ${index}\n\nwith a second paragraph`),
      ),
    );
    await page.getByText("Note 59").first().waitFor();
    const begin = page.locator('[data-entry-id="first"]');
    expect(await begin.count()).toBe(0);
    const rail = page.getByRole("navigation", { name: "Landmarks in the session" });
    await rail.getByRole("button", { name: "You: begin", exact: true }).click();
    await begin.waitFor();
    await expect.poll(() => isInView(begin)).toBe(true);
  });

  test("has marks on its thread for entries that are not loaded, and goes to them", async () => {
    const sender = { kind: "inter_session", sourceSessionKey: "agent:main:main" };
    const question = { role: "user", content: "from a session", timestamp: 1, provenance: sender };
    const failure = { ...assistantMessage("Broken off"), stopReason: "error" };
    const notes = Array.from({ length: 380 }, (_, index) => `n${index}`);
    const page = await openSession(
      userLine("first", null),
      userLine("left", "first"),
      userLine("right", "first"),
      { ...userLine("other", "right"), message: question },
      { ...userLine("failure", "other"), message: failure },
      {
        ...{ type: "compaction", id: "short", parentId: "failure", timestamp: "2026-01-01T00:00:00.000Z" },
        ...{ summary: "In short", firstKeptEntryId: "right", tokensBefore: 9 },
      },
      ...notes.map((id, index) => userLine(id, notes[index - 1] ?? "short", `Note ${index}`)),
    );
    await page.getByText("Note 379").first().waitFor();
    const rail = page.getByRole("navigation", { name: "Landmarks in the session" });
    for (const [name, id] of Object.entries({
      "Branches: right": "right",
      "You: Note 379": "n379",
      "Another session: from a session": "other",
      "You: Note 200": "n200",
      "Failed: Broken off": "failure",
      "Summary: In short": "short",
    })) {
      // Marks can overlap.
      await rail.getByRole("button", { name, exact: true }).press("Enter");
      const row = page.locator(`[data-entry-id="${id}"][data-target]`);
      await row.waitFor();
      await expect.poll(() => isInView(row)).toBe(true);
    }
  });

  test("says that an entry cannot be loaded while the gateway is offline, and does not jump to it later", async () => {
    const notes = Array.from({ length: 300 }, (_, index) => `n${index}`);
    const page = await openSession(
      userLine("first", null, "begin"),
      ...notes.map((id, index) => userLine(id, notes[index - 1] ?? "first", `Note ${index}`)),
    );
    const last = page.locator('[data-entry-id="n299"]');
    const mark = page.getByRole("button", { name: "You: begin", exact: true });
    await last.waitFor();
    await mark.waitFor();
    const port = Number(new URL(gateway.url).port);
    await gateway.stop("SIGKILL");
    const failure = page.getByText("This entry cannot be loaded: the gateway is offline.");
    try {
      await page.getByText("Gateway offline").first().waitFor();
      await mark.press("Enter");
      await failure.waitFor();
    } finally {
      gateway = await startGateway({ port });
    }
    await failure.waitFor({ state: "detached" });
    // Loads the whole session.
    await page.keyboard.press("Control+f");
    await page.keyboard.type("zzz");
    await page.getByRole("search").getByText("No match").waitFor();
    await settled(page);
    await expect.poll(() => isInView(last)).toBe(true);
    expect(await page.locator("[data-target]").count()).toBe(0);
    await mark.press("Enter");
    await page.locator('[data-entry-id="first"][data-target]').waitFor();
  });

  test("goes to the entry of a mark that a finger has nearly hit", async () => {
    options = { width: 360, height: 740, hasTouch: true };
    const page = await openSession(userLine("first", null, "begin"), userLine("second", "first", "A note"));
    const mark = page.getByRole("button", { name: "You: begin", exact: true });
    await page.locator('[data-entry-id="second"]').waitFor();
    await settled(page);
    const { x = 0, y = 0, width = 0, height = 0 } = (await mark.boundingBox()) ?? {};
    await page.touchscreen.tap(x + width / 2, y + height / 2 + 18);
    await page.locator("[data-entry-id][data-target]", { hasText: "begin" }).waitFor();
  });
});
