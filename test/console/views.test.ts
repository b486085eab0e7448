import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { keyedProviders } from "../../src/config/default-model.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { sessionText, userLine } from "../support/session-text.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, createFamily, startGateway } = await useConsole();
const main = "agent:main:main";
let gateway: GatewayProcess;

beforeAll(async () => {
  // A third agent that adds another model to the X-ray's menu. No test runs it.
  const config = (await createFamily()).replace(
    /^agents:$/m,
    "agents:\n  other: { model: anthropic/claude-sonnet-4-5 }",
  );
  gateway = await startGateway({ config });
});

const open = (route: string) => browser.open(gateway, route);
const figures = (text: string) =>
  [...text.matchAll(/[\d,]+/g)].map(([digits]) => Number(digits.replaceAll(",", "")));

const firstWords = (text: string) => text.replaceAll(/\s+/g, " ").trim().slice(0, 40);

/** Returns the entry of the last answer on the active branch. */
async function lastAnswer(): Promise<string> {
  const { entries } = await gateway.call("sessions.entries", { key: main, limit: 1000 });
  const found = entries.findLast((entry) => entry.type === "message" && entry.message.role === "assistant");
  return found?.id ?? "";
}

/** Returns the total in the token bar and the sum of the parts below it. */
async function tokens(page: Page): Promise<{ total: number; sum: number }> {
  const bar = page.getByRole("region", { name: "Tokens" });
  const [total = 0] = figures(await bar.locator("p").first().innerText());
  const parts = (await bar.getByRole("listitem").allInnerTexts()).flatMap(figures);
  return { total, sum: parts.reduce((sum, part) => sum + part, 0) };
}

describe.skipIf(browser === null)("the X-ray in the console", () => {
  test("opens from an answer, with parts that sum to the total, changes and the wire body", async () => {
    const answer = await lastAnswer();
    const page = await open(sessionRoute(main));
    const row = page.locator(`[data-entry-id="${answer}"]`);
    await row.hover();
    await row.getByRole("link", { name: "What the model saw" }).click();
    await page.getByText("The request for this answer").first().waitFor();
    const isSum = async () => {
      const { total, sum } = await tokens(page);
      return total > 0 && sum === total;
    };
    await expect.poll(isSum).toBe(true);
    expect(await page.getByRole("list", { name: "The request" }).innerText()).not.toContain(
      "What is ready for spring:",
    );
    await page.getByText(/^The body of the request/).click();
    await page.getByText('"messages"').first().waitFor();
  });

  test("lists equal changes once, with their number, and each with its text", async () => {
    const page = await open(sessionRoute(main, "context"));
    const changes = page.getByRole("region", { name: "Changes" });
    const titles = changes.locator("summary");
    await titles.first().waitFor();
    const texts = await titles.allInnerTexts();
    const notes = texts.map((text) => text.replace(/^\d+ × /, ""));
    expect(new Set(notes).size).toBe(notes.length);
    const counts = texts.map((text) => Number(/^(\d+) × /.exec(text)?.[1] ?? 1));
    const total = counts.reduce((sum, count) => sum + count, 0);
    await changes.getByRole("heading", { name: `${total} changes`, exact: true }).waitFor();
    const most = Math.max(...counts);
    expect(most).toBeGreaterThan(1);
    await titles.nth(counts.indexOf(most)).click();
    await expect.poll(() => changes.getByRole("button", { name: "Show the message" }).count()).toBe(most);
    // The page shows exactly what the gateway reports about each change.
    for (const title of await titles.all())
      if (!(await title.evaluate(({ parentElement }) => parentElement?.hasAttribute("open"))))
        await title.click();
    const { changes: reported } = await gateway.call("sessions.context", { key: main });
    for (const side of ["before", "after"] as const) {
      const expected = reported.flatMap((change) => change[side] ?? []).map(firstWords);
      expect(expected).not.toEqual([]);
      const shown = changes.locator(`[data-side=${side}] pre`);
      await expect
        .poll(async () => (await shown.allInnerTexts()).map(firstWords).sort())
        .toEqual(expected.toSorted());
    }
  });

  test("shows the request for another model from the menu, with parts that still sum to the total", async () => {
    const page = await open(sessionRoute(main, "context"));
    await page.getByRole("definition").filter({ hasText: "rehearsal/basic" }).waitFor();
    const menu = page.getByLabel("Model", { exact: true });
    await expect
      .poll(() => menu.locator("option").allInnerTexts())
      .toEqual([
        "rehearsal/basic (this session)",
        ...[
          "anthropic/claude-sonnet-4-5",
          ...keyedProviders.map(({ provider, model }) => `${provider}/${model}`),
        ].sort(),
      ]);
    expect(await menu.locator("optgroup").first().getAttribute("label")).toBe("anthropic");
    // With the keyboard, the first letters select a model.
    await menu.focus();
    await page.keyboard.type("anth");
    const isShown = () => page.getByRole("definition").filter({ hasText: "anthropic-messages" }).waitFor();
    await isShown();
    const { total, sum } = await tokens(page);
    expect(total).toBeGreaterThan(0);
    expect(sum).toBe(total);
    await page.reload();
    await isShown();
    await expect.poll(() => tokens(page)).toEqual({ total, sum });

    const other = page.getByLabel("Another model");
    await other.fill("openai/gpt-4.1");
    await other.press("Enter");
    await page.getByRole("definition").filter({ hasText: "openai/gpt-4.1" }).waitFor();
    await expect.poll(() => menu.inputValue()).toBe("openai/gpt-4.1");
    await other.fill("gpt");
    await other.press("Enter");
    await page.getByRole("alert").getByText("gpt").waitFor();
  });

  test("of the next request follows the session, and says how much of a long text is hidden", async () => {
    const key = "agent:main:long";
    await gateway.call("sessions.create", { key });
    const page = await open(sessionRoute(key, "context"));
    const request = page.getByRole("list", { name: "The request" });
    await request.waitFor();
    const lines = Array.from({ length: 2000 }, (_, index) => `line ${index}`).join("\n");
    await gateway.call("chat.send", { sessionKey: key, message: lines, idempotencyKey: "long" });
    await request.getByText("line 0 line 1").first().click();
    await request.getByText("lines hidden. Show more").waitFor();
    await request.getByText("line 1999").waitFor();
  });
});

describe.skipIf(browser === null)("the tokens of a request in the console", () => {
  test("are in the header those of the displayed branch", async () => {
    const key = "agent:main:sizes";
    const say = async (message: string) => {
      const { runId } = await gateway.call("chat.send", {
        sessionKey: key,
        message,
        idempotencyKey: message.slice(0, 12),
      });
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
      return (await gateway.call("sessions.get", { key })).leafId ?? "";
    };
    const size = async (leafId: string) => {
      const { entries } = await gateway.call("sessions.entries", { key, leafId, limit: 100 });
      const answer = entries.findLast((each) => each.type === "message" && each.message.role === "assistant");
      const usage =
        answer?.type === "message" && answer.message.role === "assistant" ? answer.message.usage : undefined;
      return `${((usage?.input ?? 0) / 1000).toFixed(1).replace(/\.0$/, "")}k in context`;
    };
    const short = await say(`a short text ${"short ".repeat(1500)}`);
    const long = await say(`a long text ${"long ".repeat(3000)}`);
    expect(await size(short)).not.toBe(await size(long));
    const page = await open(sessionRoute(key));
    await page.getByText(await size(long), { exact: true }).waitFor();
    await gateway.call("sessions.branch", { key, entryId: short });
    await page.getByText(await size(short), { exact: true }).waitFor();
    const other = await open(sessionRoute(key, "", { branch: long }));
    await other.getByText(await size(long), { exact: true }).click();
    await other.getByText("The request for this answer").first().waitFor();
  });

  test("are the model's count at the answer, in the steps of its run and in the X-ray, next to the estimate", async () => {
    const answerId = await lastAnswer();
    const { entries } = await gateway.call("sessions.entries", { key: main, around: answerId, limit: 1 });
    const [entry] = entries;
    const usage =
      entry?.type === "message" && entry.message.role === "assistant" ? entry.message.usage : undefined;
    const counted = usage?.input ?? 0;
    expect(counted).toBeGreaterThan(1000);
    const short = `${(counted / 1000).toFixed(1).replace(/\.0$/, "")}k in · ${usage?.output} out`;
    const page = await open(sessionRoute(main, "", { entry: answerId }));
    await page.locator(`[data-entry-id="${answerId}"]`).getByText(short).waitFor();
    await page.goto(`${gateway.url}/#/runs`);
    await page.getByRole("main").getByRole("listitem").filter({ hasText: "summarize what is ready" }).click();
    await page.getByRole("complementary", { name: "Run" }).getByText(short).first().waitFor();
    await page.goto(`${gateway.url}/#${sessionRoute(main, "context", { entry: answerId })}`);
    const total = page.getByRole("region", { name: "Tokens" }).locator("p").first();
    await expect
      .poll(() => total.innerText())
      .toMatch(new RegExp(`estimated; the model counted ${counted.toLocaleString("en")}$`));
    await page.getByText("The transcript shows the model’s count as “in context”.").waitFor();
    await page.goto(`${gateway.url}/#${sessionRoute(main, "context")}`);
    await page.getByText("No model has counted this request yet.").waitFor();
  });
});

describe.skipIf(browser === null)("a word that ends an exchange", () => {
  test("is no answer: the transcript, the tree and the family say that there was no reply", async () => {
    const { entries } = await gateway.call("sessions.entries", { key: main, limit: 1000 });
    const { id = "" } = entries.find((entry) => JSON.stringify(entry).includes('"REPLY_SKIP"')) ?? {};
    const page = await open(sessionRoute(main, "", { entry: id }));
    const row = page.locator(`[data-entry-id="${id}"]`);
    await row.getByText("(no reply)").waitFor();
    expect(await row.getAttribute("data-kind")).toBe("system");
    expect(await row.innerText()).not.toContain("REPLY_SKIP");
    await row.getByText("(no reply)").click();
    await row.getByText("REPLY_SKIP").waitFor();
    for (const [view, query] of [
      ["tree", {}],
      ["family", { tab: "table" }],
    ] as const) {
      await page.goto(`${gateway.url}/#${sessionRoute(main, view, query)}`);
      await page.getByText("(no reply)").first().waitFor();
      expect(await page.getByText(/REPLY_SKIP|ANNOUNCE_SKIP/).count()).toBe(0);
    }
  });
});

describe.skipIf(browser === null)("a call of a session tool", () => {
  test("is shown in the tree by its fields and those of its result", async () => {
    const page = await open(sessionRoute(main, "tree"));
    const row = (text: RegExp) => page.getByRole("treeitem").filter({ hasText: text }).first().waitFor();
    await row(/→ sessions_send\(sessionKey: agent:support:main, message: three guests arrive/);
    await row(/sessions_send: status: sent, sessionKey: agent:support:main/);
    await row(/sessions_spawn: status: ok, childSessionKey: subagent:/);
  });
});

describe.skipIf(browser === null)("a reload of the configuration", () => {
  test("lets an open page read what depends on it again", async () => {
    const page = await open("/");
    let readings = 0;
    page.on("websocket", (socket) =>
      socket.on("framesent", ({ payload }) => {
        if (payload.toString().includes('"models.list"')) readings++;
      }),
    );
    await page.goto(`${gateway.url}/#${sessionRoute(main, "context")}`);
    await page.reload();
    await expect.poll(() => readings).toBe(1);
    await gateway.call("config.reload", {});
    await expect.poll(() => readings).toBe(2);
  });
});

describe.skipIf(browser === null)("runs and approvals in the console", () => {
  test("show in a family what a partner waits for, although its other work is its own", async () => {
    const page = await open(sessionRoute(main, "family"));
    const waiting = page.locator("a[data-tone=needs-you]");
    await expect.poll(() => waiting.getAttribute("aria-label")).toMatch(/^support: needs you/);
    await expect.poll(() => page.getByRole("link", { name: /^support: / }).count()).toBe(2);
  });

  test("say why a run waits, with a link to the approval, which can be denied with a note", async () => {
    const page = await open("/runs");
    const rows = page.getByRole("main").getByRole("listitem");
    await rows.filter({ hasText: "plan three days of walks" }).getByText("task", { exact: true }).waitFor();
    await rows
      .filter({ hasText: "Three days of walks: one fixed point" })
      .getByText("result", { exact: true })
      .waitFor();
    expect(await page.getByText(/Subagent Context|has ended/).count()).toBe(0);
    for (const head of ["State", "Session", "Input", "Kind", "Took", "When"])
      await page.getByRole("main").getByText(head, { exact: true }).first().waitFor();
    await page.getByRole("link", { name: /Review approval/ }).click();
    // The row of the run also names the tool.
    const question = page.getByRole("main").getByRole("article").filter({ hasText: "sessions_send" });
    await expect.poll(() => question.locator("kbd").allInnerTexts()).toEqual(["a", "d"]);
    await page.keyboard.press("d");
    await page.locator("[aria-label='Reason, for the model (optional)']:focus").waitFor();
    await page.keyboard.type("not today");
    await page.keyboard.press("Enter");
    await expect
      .poll(async () => (await gateway.call("approvals.list", { open: false })).approvals[0])
      .toMatchObject({ answer: "denied", note: "not today" });
    await page.getByRole("main").getByText("not today").first().waitFor();
  });
});

describe.skipIf(browser === null)("search and palette in the console", () => {
  test("show more hits of a search on request", async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `pebble${index}`);
    const content = sessionText(
      ...ids.map((id, index) => userLine(id, ids[index - 1] ?? null, `a pebble with the number ${index}`)),
    );
    const key = "agent:main:pebbles";
    await gateway.call("sessions.import", { key, files: [{ name: "pebbles.jsonl", content }] });
    const page = await open("/search?q=pebble");
    const hits = page.getByRole("list", { name: "Results" }).getByRole("link");
    const more = page.getByRole("button", { name: "Show more" });
    await more.waitFor();
    await expect.poll(() => hits.count()).toBe(25);
    await more.click();
    await expect.poll(() => hits.count()).toBe(40);
    expect(
      new Set(await hits.evaluateAll((links) => links.map((each) => each.getAttribute("href")))).size,
    ).toBe(40);
    await expect.poll(() => more.count()).toBe(0);
    await gateway.call("sessions.delete", { key });
  });

  test("show a summary without the marks of Markdown", async () => {
    const page = await open("/search?q=garden");
    const hits = page.getByRole("list", { name: "Results" }).getByRole("listitem");
    const summary = hits.filter({ has: page.getByText("summary", { exact: true }) }).first();
    await expect.poll(() => summary.innerText()).toMatch(/^Goal/m);
  });

  test("land on the highlighted entry, also on an inactive branch, and the leaf stays", async () => {
    const words = "plan two days for a family with small children";
    const leafId = async () => (await gateway.call("sessions.get", { key: main })).leafId;
    const before = await leafId();
    const page = await open("/search");
    await page.locator("[type=search]:focus").waitFor();
    // Enter is pressed directly after the last letter, before the results for these words have arrived.
    await page.keyboard.type(words);
    await page.keyboard.press("Enter");
    await page.locator("[data-entry-id][data-target]", { hasText: words }).waitFor();
    await page.getByText("You are reading another branch").first().waitFor();
    // Amber is for what needs a person.
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const [found, alarm] = await page.locator("[data-target]").evaluate((row) => {
        const probe = row.appendChild(document.createElement("i"));
        probe.style.background = "var(--amber-wash)";
        const colors = [row, probe].map((each) => getComputedStyle(each).backgroundColor);
        probe.remove();
        return colors;
      });
      expect(found).not.toBe("rgba(0, 0, 0, 0)");
      expect(found).not.toBe(alarm);
    }
    // The answer follows the target entry.
    await page.locator("li:has([data-target]) ~ li [data-kind=agent]").first().waitFor();
    expect(await leafId()).toBe(before);

    await page.goBack();
    await page.getByRole("searchbox").press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator("[data-entry-id][data-target]").waitFor();
    expect(await leafId()).toBe(before);

    await page.goto(`${gateway.url}/#/search`);
    await page.getByRole("searchbox").fill("50%20 off");
    await page.waitForURL(/q=50%2520/);
    await page.reload();
    await expect.poll(() => page.getByRole("searchbox").inputValue()).toBe("50%20 off");
  });

  test("find sessions of another agent, pages and messages by keyboard alone", async () => {
    const page = await open("/");
    await page.getByRole("region", { name: "Transcript", exact: true }).waitFor();
    const goTo = async (words: string) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog", { name: "Go to" }).getByRole("combobox").waitFor();
      await page.keyboard.type(words);
      await page.keyboard.press("Enter");
    };
    await goTo("support");
    await page.getByRole("heading", { name: "Session support", exact: true }).waitFor();
    await page.getByText("describe what the front desk of a small hotel looks after").first().waitFor();
    await goTo("weather");
    await page.getByText("research the weather in the first week of spring").first().waitFor();
    await goTo("usage");
    await page.getByText("Unpriced").first().waitFor();
    await goTo("first week of spring");
    await page.locator("[data-entry-id][data-target]", { hasText: "first week of spring" }).waitFor();
  });
});

describe.skipIf(browser === null)("the lines of the tree", () => {
  test("are dashed for other branches, and solid for the active one", async () => {
    const page = await open(sessionRoute(main, "tree"));
    await page.getByRole("tree").getByText("for families").waitFor();
    const dashes = (lines: string) =>
      page
        .getByRole("tree")
        .locator(lines)
        .evaluateAll((all) => [...new Set(all.map((line) => getComputedStyle(line).strokeDasharray))]);
    await expect.poll(() => dashes("svg line[data-active]")).toEqual(["none"]);
    await expect.poll(() => dashes("svg line:not([data-active], [class*=tick])")).toEqual(["3px, 3px"]);
  });
});

describe.skipIf(browser === null)("a session's views in the console", () => {
  test("a long model name leaves Find on the screen", async () => {
    const page = await open("/search");
    await page.routeWebSocket(/./, (socket) => {
      socket.connectToServer().onMessage((text) => {
        const message = JSON.parse(String(text));
        if (message.payload?.model !== undefined) message.payload.model = "m".repeat(159);
        socket.send(JSON.stringify(message));
      });
    });
    await page.goto(`${gateway.url}/#${sessionRoute(main)}`);
    await page.reload();
    await page.getByText("m".repeat(159)).waitFor();
    const { x = 0, width = 0 } = (await page.getByRole("button", { name: "Find" }).boundingBox()) ?? {};
    expect(x + width).toBeLessThanOrEqual(1280);
  });

  test("say that an address names an entry that does not exist", async () => {
    const page = await open(sessionRoute(main, "tree", { entry: "nope" }));
    await page.getByText("The entry in this address is not in this session.").waitFor();
    await page.getByRole("tree").waitFor();
    await page.keyboard.press("n");
    await page.getByText("The entry in this address is not in this session.").waitFor({ state: "detached" });
  });
});

describe.skipIf(browser === null)("access in the console", () => {
  test("opens the rules that decided about a cell, and shows them after a reload", async () => {
    const page = await open("/access");
    await expect.poll(() => page.title()).toBe("Sessions · Access · Skein");
    const cell = page.getByRole("button", { name: /^support may .* main$/ });
    await cell.focus();
    await page.keyboard.press("Enter");
    const rules = page.getByRole("complementary", { name: "Rules" });
    const isShown = async () => {
      await rules.getByText("allowed").first().waitFor();
      await rules.getByRole("listitem").first().waitFor();
      await expect.poll(() => cell.getAttribute("aria-pressed")).toBe("true");
    };
    await isShown();
    await page.reload();
    await isShown();
    await cell.focus();
    await page.keyboard.press("Escape");
    await rules.waitFor({ state: "detached" });
  });
});

describe.skipIf(browser === null)("the access matrix", () => {
  test("folds finished sub-agents under their parent, and shows one that a link names", async () => {
    const page = await open("/access");
    const matrix = page.getByRole("table", { name: "Which sessions can see which others" });
    const columns = matrix.getByRole("columnheader");
    const fold = matrix.getByRole("button", { name: "3 finished sub-agents" });
    const helper = "helper-3";
    await fold.waitFor();
    const folded = await columns.allInnerTexts();
    expect(folded).toContain("main");
    expect(folded).not.toContain(helper);
    await fold.press("Enter");
    await expect.poll(() => columns.count()).toBe(folded.length + 3);
    // Rows and columns have the same order, in which the sub-agents follow their parent.
    const names = await columns.allInnerTexts();
    const rows = await matrix.locator("tbody th").allInnerTexts();
    expect(rows.filter((name) => !/finished/.test(name))).toEqual(names);
    expect(rows.indexOf("3 finished sub-agents")).toBe(rows.indexOf("main") + 1);
    expect(names.indexOf(helper)).toBeGreaterThan(names.indexOf("main"));
    await page.getByRole("button", { name: new RegExp(`^${helper} may .* main$`) }).press("Enter");
    await page.getByRole("complementary", { name: "Rules" }).getByText("allowed").first().waitFor();
    await page.getByRole("link", { name: "Usage" }).click();
    await page.goBack();
    await expect.poll(() => fold.getAttribute("aria-expanded")).toBe("true");
    await page.reload();
    await expect.poll(() => fold.getAttribute("aria-expanded")).toBe("false");
    const cell = page.getByRole("button", { name: new RegExp(`^${helper} may .* main$`) });
    await expect.poll(() => cell.getAttribute("aria-pressed")).toBe("true");
    await expect.poll(() => columns.count()).toBe(folded.length + 1);
  });
});

describe.skipIf(browser === null)("the family in the console", () => {
  test("has the same sessions as lanes, as a graph and as tables, and leads to their entries", async () => {
    const { nodes, edges } = await gateway.call("sessions.family", { key: main });
    const page = await open(sessionRoute(main, "family"));
    const lanes = page.getByRole("list", { name: "Sessions in the family" }).getByRole("link");
    await expect.poll(() => lanes.count()).toBe(nodes.length);
    const colors = (links: Element[]) => links.map((link) => link.getAttribute("data-thread"));
    const names = (await lanes.allInnerTexts()).map((name) => name.split("\n")[0] ?? "");
    const threads = await lanes.evaluateAll(colors);
    // The root, then its children in spawn order, then the partner.
    expect(names).toEqual([
      "main",
      "helper-1 write a welcome note for spring guests",
      "helper-2 compare breakfast in the garden versus breakfast inside",
      "helper-3 plan three days of walks",
      "support",
    ]);
    expect(new Set(threads).size).toBe(5);

    await page.getByRole("tab", { name: "Graph" }).click();
    const boxes = page.locator(".react-flow__node").getByRole("link", { includeHidden: true });
    await expect.poll(() => boxes.count()).toBe(nodes.length);
    await expect.poll(async () => (await boxes.evaluateAll(colors)).sort()).toEqual(threads.toSorted());

    await page.getByRole("tab", { name: "Table" }).click();
    const rows = (name: string) => page.getByRole("region", { name, exact: true }).getByRole("row");
    await expect.poll(() => rows("Sessions").count()).toBe(nodes.length + 1);
    const hidden = () =>
      page
        .locator("table")
        .evaluateAll((tables) =>
          tables.map(({ parentElement: box }) => (box?.scrollWidth ?? 0) - (box?.clientWidth ?? 0)),
        );
    await expect.poll(hidden).toEqual([0, 0, 0]);
    const cells = page.getByRole("region", { name: "Sessions", exact: true }).locator("td:first-child");
    expect(await cells.allInnerTexts()).toEqual(["main", "helper-1", "helper-2", "helper-3", "support"]);
    const tasks = page.getByRole("region", { name: "Sessions", exact: true }).locator("td:nth-child(2)");
    expect(await tasks.allInnerTexts()).toEqual(names.map((name) => / (.+)/.exec(name)?.[1] ?? ""));
    expect(await cells.locator("[data-thread]").evaluateAll(colors)).toEqual(threads);
    await page.getByRole("button", { name: "3 finished sub-agents" }).click();
    for (const [index, name] of names.entries()) {
      const row = page.locator("a[data-part]").filter({ has: page.getByText(name, { exact: true }) });
      await expect.poll(() => row.getAttribute("data-thread")).toBe(threads[index]);
    }
    await expect.poll(() => rows("Between sessions").count()).toBe(edges.length + 1);
    await rows("Between sessions")
      .filter({ hasText: "three guests arrive" })
      .getByRole("link")
      .last()
      .click();
    await page.locator("[data-entry-id][data-target]", { hasText: "three guests arrive" }).waitFor();
  });

  test("is readable as a graph on a phone, also when everything is fitted into the view", async () => {
    const route = sessionRoute(main, "family", { tab: "graph" });
    const page = await browser.open(gateway, route, { width: 360, height: 740, hasTouch: true });
    const boxes = page.locator(".react-flow__node");
    await expect.poll(() => boxes.count()).toBe(5);
    /** What is outside of the window, and the height of the smallest text. */
    const look = () =>
      page.locator(".react-flow__node a, .react-flow__edge text").evaluateAll((parts) => {
        const cut = parts.filter((part) => {
          const { left, right, top, bottom } = part.getBoundingClientRect();
          return left < 0 || right > innerWidth || top < 0 || bottom > innerHeight;
        });
        const zoom = new DOMMatrix(
          getComputedStyle(document.querySelector(".react-flow__viewport") as Element).transform,
        ).a;
        const sizes = parts.map((part) => Number.parseFloat(getComputedStyle(part).fontSize) * zoom);
        return { cut: cut.map(({ textContent }) => textContent), isReadable: Math.min(...sizes) >= 11 };
      });
    await page.locator(".react-flow__edge text", { hasText: "2 messages" }).waitFor();
    await expect.poll(look).toEqual({ cut: [], isReadable: true });
    for (let step = 0; step < 3; step += 1) await page.getByRole("button", { name: "Zoom In" }).tap();
    await expect.poll(async () => (await look()).cut).not.toEqual([]);
    await page.getByRole("button", { name: "Fit View" }).tap();
    await expect.poll(look).toEqual({ cut: [], isReadable: true });
  });

  test("shows every run in the lanes of a phone, again after zooming when everything is fitted", async () => {
    const { spans } = await gateway.call("sessions.family", { key: main });
    const page = await browser.open(gateway, sessionRoute(main, "family"), { width: 360, height: 740 });
    const marks = page.locator("svg [data-mark]:not([aria-label*='→'])");
    const inView = () =>
      marks.evaluateAll(
        (links) =>
          links
            .map((link) => link.getBoundingClientRect())
            .filter(({ left, right }) => left >= 0 && right <= innerWidth).length,
      );
    await expect.poll(inView).toBe(spans.length);
    for (let step = 0; step < 5; step += 1) await page.getByRole("button", { name: "Zoom in" }).click();
    await expect.poll(inView).toBeLessThan(spans.length);
    await page.getByRole("button", { name: "Fit" }).click();
    await expect.poll(inView).toBe(spans.length);
  });

  test("folds idle time, which a press unfolds and folds again", async () => {
    const page = await open(sessionRoute(main, "family"));
    const folds = page.getByRole("button", { name: /^Show .+ of idle time$/ });
    const open9 = page.getByRole("button", { name: "Collapse 9 min of idle time" });
    await folds.first().waitFor();
    const count = await folds.count();
    expect(count).toBeGreaterThan(2);
    const drawn = page.locator("svg g[class*=fold]");
    await expect.poll(() => drawn.count()).toBe(count);
    const first = page.getByRole("button", { name: "Show 9 min of idle time" }).first();
    await first.press("Enter");
    await open9.waitFor();
    await expect.poll(() => open9.getAttribute("aria-expanded")).toBe("true");
    await expect.poll(() => folds.count()).toBe(count - 1);
    await expect.poll(() => drawn.count()).toBe(count - 1);
    await open9.click();
    await expect.poll(() => folds.count()).toBe(count);
    await expect.poll(() => drawn.count()).toBe(count);
  });
});

// The last test, because its sessions replace all others in the sidebar.
describe.skipIf(browser === null)("a link to a pair of sessions", () => {
  test("shows their cell, also if neither of them is among the most recent sessions", async () => {
    for (let index = 0; index < 24; index += 1)
      await gateway.call("sessions.create", { key: `agent:main:recent-${index}` });
    const query = new URLSearchParams({ from: "agent:support:main", to: main, action: "history" });
    const page = await browser.open(gateway, `/access?${query}`, { height: 480 });
    const cell = page.getByRole("button", { name: /^support may .* main$/ });
    await expect.poll(() => cell.getAttribute("aria-pressed")).toBe("true");
    await page.goto(`${gateway.url}/#/access?from=agent:main:recent-0&to=agent:main:recent-23`);
    const last = page.locator("button[aria-pressed=true]");
    const isInView = () =>
      last.evaluate((each) => {
        const { x, y, width, height } = each.getBoundingClientRect();
        return document.elementFromPoint(x + width / 2, y + height / 2) === each;
      });
    await expect.poll(isInView).toBe(true);
  });
});
