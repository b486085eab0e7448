import type { Locator, Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway } = await useConsole();
let gateway: GatewayProcess;

const config = `agents:
  main: { model: rehearsal/basic, tools: { ask: [session_search] }, subagents: { maxSpawnDepth: 3 } }
  support: { model: rehearsal/basic }
tools: { sessions: { visibility: all }, agentToAgent: { enabled: true } }
`;

beforeAll(async () => {
  gateway = await startGateway({ config });
  for (let index = 0; index < 30; index += 1) {
    const key = `agent:${index % 2 === 0 ? "main" : "support"}:note-${index}`;
    await gateway.call("sessions.create", { key, label: `note ${index}` });
  }
});

const open = () => browser.open(gateway, "/sessions");
const table = (page: Page) => page.getByRole("main").getByRole("list", { name: "Sessions" });
const names = (page: Page) => table(page).locator("[data-roving]").allInnerTexts();

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
      const path = line.getByRole("group", { name: "Path from the root" }).getByRole("link");
      await expect.poll(() => path.count()).toBe(3);
    }
    const [first, second] = pages as [Page, Page];
    // According to this page's clock, the approval has expired, although the gateway has not reported it yet.
    await second.clock.setFixedTime(Date.now() + 3_600_000);
    await second.reload();
    await table(second).getByText("Expired").waitFor();
    expect(
      await second
        .getByRole("main")
        .getByRole("button", { name: /Approve|Deny/ })
        .count(),
    ).toBe(0);
    await first.getByRole("main").getByRole("button", { name: "Approve" }).first().click();
    await table(second).getByText("session_search").waitFor({ state: "detached" });
    // The row under the pointer stays in position and shows who answered, but it cannot be answered again.
    await table(first)
      .getByText(/^Approved just now by \S+$/)
      .waitFor();
    expect(await first.getByRole("main").getByRole("button", { name: "Approve" }).count()).toBe(0);
    await first.mouse.move(600, 5);
    await table(first).getByText("session_search").waitFor({ state: "detached" });
    const { approvals } = await gateway.call("approvals.list", {});
    expect(approvals.filter(({ answer }) => answer === undefined)).toEqual([]);
  });

  test("filters by kind, agent, user, channel, state and text, and shows the same after a reload", async () => {
    await gateway.call("sessions.create", { key: "agent:main:slack:group:garden" });
    await gateway.call("sessions.create", { key: "agent:main:of-ann", userId: "ann" });
    const { runId } = await gateway.call("chat.send", {
      sessionKey: "agent:support:failing",
      message: "fail with status 400",
      idempotencyKey: "failing",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const page = await open();
    const shows = async (...expected: readonly string[]) => {
      await expect.poll(async () => (await names(page)).sort()).toEqual(expected);
      await page.reload();
      await expect.poll(async () => (await names(page)).sort()).toEqual(expected);
    };
    for (const [menu, value, ...expected] of [
      ["Kind", "group", "main:slack:group:garden"],
      ["Channel", "slack", "main:slack:group:garden"],
      ["User", "ann", "main:of-ann · ann"],
      ["State", "failed", "support:failing"],
    ] as const) {
      await page.getByLabel(menu, { exact: true }).selectOption(value);
      await shows(...expected);
      await page.getByLabel(menu, { exact: true }).selectOption("any");
    }
    await page.getByLabel("Agent", { exact: true }).selectOption("support");
    await page.getByLabel("Filter by name, label or key").fill("note 2");
    await shows("note 21", "note 23", "note 25", "note 27", "note 29");
  });

  test("sorts as the gateway does, which filters by state and key, sorts and counts over HTTP", async () => {
    const keys = ["note-5", "note-15", "note-9"].map((name) => `agent:support:${name}`);
    for (const [index, sessionKey] of keys.entries()) {
      const message = `repeat ${"many words ".repeat(1 + ((index + 1) % 3) * 40)}`;
      const { runId } = await gateway.call("chat.send", {
        sessionKey,
        message,
        idempotencyKey: `sort ${sessionKey}`,
      });
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    }
    const list = async (sort: "updated" | "created" | "tokens" | "name") => {
      const { sessions, total } = await gateway.call("sessions.list", {
        keys: [...keys, "agent:support:missing"],
        states: ["done"],
        sort,
        total: true,
      });
      expect(total).toBe(keys.length);
      return sessions.map(({ label }) => label ?? "");
    };
    const page = await open();
    await page.getByLabel("Agent", { exact: true }).selectOption("support");
    const shown = async () => (await names(page)).filter((name) => /^note (?:5|9|15)$/.test(name));
    for (const [sort, expected] of [
      ["updated", ["note 9", "note 15", "note 5"]],
      ["created", ["note 15", "note 9", "note 5"]],
      ["tokens", ["note 15", "note 5", "note 9"]],
      ["name", ["note 15", "note 5", "note 9"]],
    ] as const) {
      await page.getByLabel("Sort", { exact: true }).selectOption(sort);
      await page.getByLabel("Filter by name, label or key").fill(sort === "name" ? "note" : "");
      await expect
        .poll(async () => [sort, await list(sort), await shown()])
        .toEqual([sort, expected, expected]);
    }
  });

  test("never shows a page of the list that is older than an event", async () => {
    const key = "agent:main:note-4";
    const page = await open();
    await table(page).getByText("note 4", { exact: true }).waitFor();
    const held: (() => void)[] = [];
    let isHolding = true;
    let isSubscribed = false;
    let hasEvent = false;
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((text) => {
        const { event, payload } = JSON.parse(String(text));
        isSubscribed ||= payload?.subscriptionId !== undefined;
        hasEvent ||= event === "session.updated" && payload.sessionKey === key;
        // The whole list, in contrast to the rows that are read again after an event.
        if (isHolding && payload?.total !== undefined) held.push(() => socket.send(text));
        else socket.send(text);
      });
    });
    // Records every name that the page ever shows for this session.
    await page.addInitScript(() => {
      const seen = new Set<string>();
      Object.assign(globalThis, { seen });
      new MutationObserver(() => {
        for (const { textContent } of document.querySelectorAll("a")) seen.add(textContent);
      }).observe(document, { childList: true, subtree: true, characterData: true });
    });
    await page.reload();
    await expect.poll(() => held.length > 0 && isSubscribed).toBe(true);
    await gateway.call("sessions.rename", { key, label: "renamed meanwhile" });
    await expect.poll(() => hasEvent).toBe(true);
    isHolding = false;
    for (const release of held.splice(0)) release();
    await table(page).getByText("renamed meanwhile", { exact: true }).waitFor();
    await table(page).getByText("note 5", { exact: true }).waitFor();
    const seen = await page.evaluate(() => [...(globalThis as unknown as { seen: Set<string> }).seen]);
    expect(seen.filter((name) => /^note 4\b/.test(name))).toEqual([]);
    await gateway.call("sessions.rename", { key, label: "note 4" });
  });

  test("has its title on one line, its tools inside the header and its menus in one row on a phone", async () => {
    const page = await browser.open(gateway, "/sessions", { width: 360, height: 740, hasTouch: true });
    const title = page.getByRole("heading", { name: /^Sessions \d\d$/ });
    await title.waitFor();
    const edges = (locator: Locator) =>
      locator.evaluate((element) => {
        const { top, bottom, right } = element.getBoundingClientRect();
        return { top, bottom, right };
      });
    const [head, name] = [await edges(title.locator("..")), await edges(title)];
    expect(name.bottom - name.top).toBeLessThan(30);
    for (const label of ["Sort", "Archived"]) {
      const tool = await edges(page.getByRole("main").locator("label", { hasText: label }).first());
      expect(tool.top).toBeGreaterThanOrEqual(head.top + 4);
      expect(tool.bottom).toBeLessThanOrEqual(head.bottom - 4);
      expect(tool.right).toBeLessThanOrEqual(360);
    }
    const rows = ["State", "Kind", "Channel"].map((label) => edges(page.getByLabel(label, { exact: true })));
    expect(new Set((await Promise.all(rows)).map(({ top }) => top)).size).toBe(1);
  });

  test("selects by key, archives, and takes it back", async () => {
    const page = await browser.open(gateway, "/sessions?q=note+1");
    await expect.poll(async () => (await names(page)).length).toBe(11);
    const [first] = await names(page);
    await table(page).locator("[data-roving]").first().focus();
    await page.keyboard.press("x");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("x");
    await page.getByText("2 selected").first().waitFor();
    await page.keyboard.press("e");
    await page.getByText("2 sessions archived.").first().waitFor();
    await expect.poll(async () => (await names(page)).length).toBe(9);
    expect(await names(page)).not.toContain(first);
    // The focus moves to the row that replaced the archived one.
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.hasAttribute("data-roving")))
      .toBe(true);
    await page.keyboard.press("z");
    await page.getByText("2 sessions unarchived.").first().waitFor();
    await expect.poll(async () => (await names(page)).length).toBe(11);
  });

  test("answers an approval under the short name of the main session", async () => {
    const { runId } = await gateway.call("chat.send", {
      sessionKey: "main",
      message: "search for lamps",
      idempotencyKey: "lamps",
    });
    const page = await browser.open(gateway, "/s/main");
    const question = page.getByRole("region", { name: "Needs you" });
    await question.getByRole("button", { name: "Approve" }).click();
    // A question under the pointer stays in position.
    await page.mouse.move(600, 5);
    await question.waitFor({ state: "detached" });
    const { state } = await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    expect(state).toBe("ok");
    await expect.poll(() => page.locator("a[data-part][aria-current]").innerText()).toContain("main");
    await page.goto(`${gateway.url}/#/s/main/family`);
    await page
      .getByRole("link", { name: /^main: done/ })
      .last()
      .waitFor();
  });

  test("answers with the keys that a question shows, without a focus on it", async () => {
    const page = await open();
    const ask = (topic: string) =>
      gateway.call("chat.send", {
        sessionKey: "agent:main:main",
        message: `search for ${topic}`,
        idempotencyKey: topic,
      });
    const question = table(page).getByRole("article");
    const { runId } = await ask("chairs");
    await question.getByText("chairs").waitFor();
    await expect.poll(() => question.locator("kbd").allInnerTexts()).toEqual(["a", "d"]);
    expect(await page.evaluate(() => document.activeElement === document.body)).toBe(true);
    await page.keyboard.press("a");
    await question.waitFor({ state: "detached" });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const { approvals } = await gateway.call("approvals.list", { open: false, runId });
    expect(approvals.map(({ answer }) => answer)).toEqual(["approved"]);

    // When another row has the focus, the keys no longer apply to the question.
    const { runId: denied } = await ask("tables");
    await question.getByText("tables").waitFor();
    await table(page).locator("[data-roving]").last().focus();
    await expect.poll(() => question.locator("kbd").count()).toBe(0);
    await page.keyboard.press("a");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => question.locator("kbd").allInnerTexts()).toEqual(["a", "d"]);
    await page.keyboard.press("d");
    await page.keyboard.type("no tables");
    await page.keyboard.press("Enter");
    await question.waitFor({ state: "detached" });
    const { approvals: answered } = await gateway.call("approvals.list", { open: false, runId: denied });
    expect(answered).toEqual([expect.objectContaining({ answer: "denied", note: "no tables" })]);
    await gateway.call("agent.wait", { runId: denied, timeoutMs: 150_000 });
  });

  test("shows an archived session that needs an answer, but no other archived one", async () => {
    const [asking, quiet] = ["agent:main:put-away", "agent:main:quiet"];
    const { runId } = await gateway.call("chat.send", {
      sessionKey: asking,
      message: "search for curtains",
      idempotencyKey: "curtains",
    });
    await gateway.call("sessions.create", { key: quiet });
    const page = await open();
    const question = table(page).getByRole("article").filter({ hasText: "curtains" });
    await question.waitFor();
    await expect.poll(() => names(page)).toContain("main:quiet");
    for (const key of [asking, quiet]) await gateway.call("sessions.archive", { key });
    await expect.poll(() => names(page)).not.toContain("main:quiet");
    expect(await names(page)).toContain("main:put-away");
    await page.reload();
    await question.getByRole("button", { name: "Approve" }).click();
    expect(await names(page)).not.toContain("main:quiet");
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
  });

  test("puts a failed session first in Done, marks it in the sidebar, and calls a sub-agent by its kind", async () => {
    for (const [sessionKey, message] of [
      ["agent:support:broken", "fail with status 400"],
      ["agent:support:note-11", "repeat hello"],
      ["agent:support:main", "spawn one helper to repeat hello"],
    ] as const) {
      const { runId } = await gateway.call("chat.send", {
        sessionKey,
        message,
        idempotencyKey: `sort ${sessionKey}`,
      });
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    }
    const page = await open();
    await expect
      .poll(async () => (await names(page)).filter((name) => /^(support:broken|note 11)$/.test(name)))
      .toEqual(["support:broken", "note 11"]);
    const sidebar = page.getByRole("complementary").getByRole("list", { name: "Sessions" });
    await sidebar.getByRole("link", { name: /^support:broken\s*failed$/ }).waitFor();
    await sidebar.getByRole("link", { name: /^note 11\s*\d/ }).waitFor();

    await page.getByLabel("Kind", { exact: true }).selectOption("sub-agent or other");
    await table(page).getByText("sub-agent", { exact: true }).first().waitFor();
    await table(page).locator("li", { hasText: "note 11" }).getByText("other", { exact: true }).waitFor();
  });

  test("folds finished sub-agents under their parent in the sidebar, and keeps the others visible", async () => {
    const spawnedBy = "agent:support:parent";
    const say = async (sessionKey: string, message: string) => {
      const { runId } = await gateway.call("chat.send", { sessionKey, message, idempotencyKey: message });
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    };
    await say(spawnedBy, "spawn two helpers to water the roses; count the chairs and summarize");
    const children = async () => (await gateway.call("sessions.list", { spawnedBy })).sessions;
    const states = async () => (await children()).map(({ state }) => state).sort();
    await expect.poll(states).toEqual(["done", "done"]);
    const [failing] = await children();
    await say(failing?.key ?? "", "fail with status 400");
    await expect.poll(states).toEqual(["done", "failed"]);
    const page = await open();
    const sidebar = page.getByRole("complementary").getByRole("list", { name: "Sessions" });
    const nested = sidebar.locator("[data-nested]");
    await sidebar.getByRole("link", { name: new RegExp(`${failing?.displayName}\\s*failed$`) }).waitFor();
    const fold = sidebar
      .locator("li", { hasText: "support:parent" })
      .locator("+ li")
      .getByRole("button", { name: "1 finished sub-agent", exact: true });
    expect(await fold.getAttribute("aria-expanded")).toBe("false");
    expect(await nested.count()).toBe(0);
    await fold.focus();
    await page.keyboard.press("Enter");
    await nested.first().waitFor();
    await expect.poll(() => fold.evaluate((button) => document.activeElement === button)).toBe(true);
    await page.getByRole("link", { name: "Usage" }).click();
    await page.getByText("Unpriced").first().waitFor();
    await expect.poll(() => nested.count()).toBe(1);
    // The session that the page shows stays visible.
    await nested.first().click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await fold.click();
    await expect.poll(() => fold.getAttribute("aria-expanded")).toBe("false");
    await expect.poll(() => nested.getAttribute("aria-current")).toBe("page");
    await page.getByRole("link", { name: "Usage" }).click();
    await expect.poll(() => nested.count()).toBe(0);
  });

  test("groups its sessions under Needs you, Working and Done, in this order", async () => {
    const start = (sessionKey: string, message: string) =>
      gateway.call("chat.send", { sessionKey, message, idempotencyKey: `${sessionKey} ${message}` });
    const runs = [
      await start("agent:main:grouped-asks", "search for vases"),
      await start("agent:support:grouped-works", "describe the roof in 300 seconds"),
      await start("agent:support:grouped-done", "repeat hello"),
    ];
    const page = await browser.open(gateway, "/sessions?q=grouped");
    const groups = async () => {
      const lines = await table(page).locator("h2, a[data-roving]").allInnerTexts();
      return lines.map((line) => line.replaceAll(/\s+/g, " ").trim());
    };
    await expect
      .poll(groups)
      .toEqual([
        "Needs you 1",
        "main:grouped-asks",
        "Working 1",
        "support:grouped-works",
        "Done 1",
        "support:grouped-done",
      ]);
    for (const { runId } of runs.slice(0, 2)) {
      await gateway.call("runs.abort", { runId });
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    }
  });

  test("does not move rows under the pointer", async () => {
    // Only these, because failed sessions of other tests come first.
    const page = await browser.open(gateway, "/sessions?q=note");
    await expect.poll(async () => (await names(page)).length).toBeGreaterThan(10);
    const row = table(page).locator("[data-roving]").nth(3);
    // From here on, the rows stay where they are.
    await row.hover();
    const name = await row.innerText();
    const box = await row.boundingBox();
    const { runId } = await gateway.call("chat.send", {
      sessionKey: "agent:support:note-9",
      message: "repeat hello",
      idempotencyKey: "move up",
    });
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    // The row of the session that answered is read again, and its tokens appear.
    await table(page)
      .locator("li", { hasText: "note 9" })
      .getByText(/^[\d.]+k?$/)
      .waitFor();
    expect(await row.innerText()).toBe(name);
    expect(await row.boundingBox()).toEqual(box);
    await page.mouse.move(5, 5);
    await expect.poll(async () => (await names(page))[0]).toBe("note 9");
  });

  test("shows 10,000 sessions without mounting all, and counts a new one under the pointer", async () => {
    const page = await open();
    const lists = await answerListsWith(page, 10_000);
    await page.reload();
    await page.getByRole("heading", { name: "Sessions 10,000" }).waitFor();
    const rows = table(page).locator("[data-roving]");
    await rows.first().waitFor();
    await rows.nth(3).hover();
    const box = await rows.nth(3).boundingBox();
    // More rows can be mounted below these.
    const top = async () => (await names(page)).slice(0, 10);
    const before = await top();
    await gateway.call("sessions.create", { key: "agent:main:brand-new" });
    const fresh = page.getByRole("main").getByRole("button", { name: "1 new" });
    await fresh.waitFor();
    expect(await top()).toEqual(before);
    expect(await rows.nth(3).boundingBox()).toEqual(box);
    await fresh.click();
    await expect.poll(async () => (await names(page))[0]).toBe("main:brand-new");
    // A page that cannot be read is not requested repeatedly. Retry continues where it failed.
    lists.isFailing = true;
    await rows.first().focus();
    await page.keyboard.press("End");
    await page.getByText("The list is broken.").waitFor();
    lists.isFailing = false;
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByText("The list is broken.").waitFor({ state: "detached" });
    await rows.last().focus();
    await expect
      .poll(async () => {
        await page.keyboard.press("End");
        return Number((await names(page)).at(-1)?.replace("many ", ""));
      })
      .toBeGreaterThan(900);
    expect(lists.failures).toBeLessThan(10);
    expect(await rows.count()).toBeLessThan(100);
  });

  test("folds 10,000 sub-agents into one row, and mounts only those in view when it is opened", async () => {
    const page = await open();
    await answerListsWith(page, 10_000, { spawnedBy: "agent:main:many-0" });
    await page.reload();
    const sidebar = page.getByRole("complementary").getByRole("list", { name: "Sessions" });
    const fold = sidebar.getByRole("button", { name: "9,999 finished sub-agents" });
    await fold.click();
    const nested = sidebar.locator("[data-nested]");
    await nested.filter({ hasText: "many 1" }).first().waitFor();
    expect(await nested.count()).toBeLessThan(100);
    await fold.click();
    await expect.poll(() => nested.count()).toBe(0);
  });
});

/** Answers the console's session lists with this many sessions. Other calls and events go to the gateway. */
async function answerListsWith(page: Page, total: number, fields: object = {}) {
  const lists = { isFailing: false, failures: 0 };
  await page.routeWebSocket(/./, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((text) => {
      const { type, id, method, params } = JSON.parse(String(text));
      if (type !== "req" || method !== "sessions.list" || params.keys !== undefined) return server.send(text);
      const reply = (result: object) => socket.send(JSON.stringify({ type: "res", id, ...result }));
      if (lists.isFailing) {
        lists.failures += 1;
        return reply({
          ok: false,
          error: { code: "internal", message: "The list is broken.", retryable: false },
        });
      }
      const from = Number(params.cursor ?? 0);
      const to = Math.min(total, from + params.limit);
      const sessions = Array.from({ length: to - from }, (_, index) => ({
        key: `agent:main:many-${from + index}`,
        label: `many ${from + index}`,
        sessionId: `many-${from + index}`,
        kind: "other",
        channel: "unknown",
        state: "done",
        updatedAt: 1_000_000 - from - index,
        ...fields,
      }));
      const more = to < total ? { nextCursor: String(to) } : {};
      reply({ ok: true, payload: { count: sessions.length, sessions, total, ...more } });
    });
  });
  return lists;
}
