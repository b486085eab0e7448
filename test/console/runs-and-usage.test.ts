import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSkein } from "../../src/app.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { LoopbackServer } from "../support/held-model.ts";
import { signatureOf } from "../support/webhook-signature.ts";
import { sessionRoute, tabTo } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, home, startGateway } = await useConsole();
let gateway: GatewayProcess;

const config = `agents:
  main: { model: rehearsal/basic, tools: { ask: [session_search] } }
  busy: { model: busy/model }
retries: { max: 1 }
lanes: { main: 2 }
`;
const secret = "a secret of the desk";
/** What the program behind the webhook answers. 410 ends the delivery, and after 503 it is tried again. */
let deskStatus = 410;
/** Ends when the program behind the webhook may answer. */
let deskPause: Promise<void> | null = null;
let desk: LoopbackServer;
const twin = "agent:main:twin";
const users = [{}, { userId: "ann" }, { userId: "bob" }] as const;

beforeAll(async () => {
  await spend();
  desk = await LoopbackServer.listen(async ({ url }, response) => {
    // The provider of the agent `busy`, which asks its clients to come back later.
    if (url?.startsWith("/v1")) response.writeHead(429, { "retry-after": "300" }).end();
    else {
      await deskPause;
      response.writeHead(deskStatus).end();
    }
  });
  const channels = `channels: { desk: { type: webhook, secret: "${secret}", url: "${desk.url}" } }\n`;
  const models = `models: { providers: { busy: { baseUrl: "${desk.url}/v1", apiKey: none } } }\n`;
  gateway = await startGateway({ config: config + channels + models });
  for (const user of users) await gateway.call("sessions.create", { key: twin, ...user });
});

afterAll(() => desk.close());

/** Ann's and Bob's answers in sessions with the same key. One of the answers has no price. */
async function spend(): Promise<void> {
  const skein = await openSkein({ dir: `${home.path}/root`, cwd: home.path, quiet: true });
  const { sessions } = skein.store;
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const key = "agent:main:spent";
  for (const [userId, totalTokens, isPriced] of [
    ["ann", 1000, true],
    ["bob", 500, false],
  ] as const) {
    const { sessionId } = await sessions.create({ userId, agentId: "main" }, { key, cwd: "/" });
    const usage = { ...none, totalTokens, cost: { ...none, total: isPriced ? 2 : 0 } };
    const from = { api: "a", provider: "p", model: "m", usage, stopReason: "stop", timestamp: 2 } as const;
    const content = [{ type: "text", text: "done" } as const];
    const price = isPriced ? {} : { skein: { costKnown: false } };
    const message = { role: "assistant", content, ...from, ...price } as const;
    await sessions.append({ userId }, sessionId, [{ draft: { type: "message", message } }]);
  }
  await skein.close();
}

let sent = 0;

async function send(message: string, user: { readonly userId?: string } = {}, sessionKey = twin) {
  sent += 1;
  return gateway.call("chat.send", { sessionKey, message, idempotencyKey: `message ${sent}`, ...user });
}

const open = (route: string, token?: string) =>
  browser.open(gateway, route, token === undefined ? {} : { token });
const runs = (page: Page) => page.getByRole("main").locator("[data-roving]");
const sessions = (page: Page) => page.getByRole("main").getByRole("list", { name: "Sessions" });
const names = (page: Page) => sessions(page).locator("[data-roving]").allInnerTexts();

describe.skipIf(browser === null)("a token for all users in the console", () => {
  test("sees the rows of two users apart, filters by user, and keeps the user in links", async () => {
    const page = await open("/sessions?q=twin");
    await expect
      .poll(async () => (await names(page)).sort())
      .toEqual(["main:twin", "main:twin · ann", "main:twin · bob"]);
    await page.getByLabel("User", { exact: true }).selectOption("ann");
    await expect.poll(() => names(page)).toEqual(["main:twin · ann"]);
    // An event from another user does not add a row.
    const { runId } = await send("repeat hello", { userId: "bob" });
    await gateway.call("agent.wait", { runId, userId: "bob", timeoutMs: 150_000 });
    await gateway.call("sessions.rename", { key: twin, label: "twin of ann", userId: "ann" });
    await expect.poll(() => names(page)).toEqual(["twin of ann · ann"]);
    // Each part has its own direction, so that a name from right to left stays in front of its user.
    await gateway.call("sessions.rename", { key: twin, label: "התאומה", userId: "ann" });
    await expect.poll(() => names(page)).toEqual(["התאומה · ann"]);
    const parts = sessions(page).locator("[data-roving] bdi bdi");
    expect(await parts.evaluateAll((all) => all.map((each) => getComputedStyle(each).direction))).toEqual([
      "rtl",
      "ltr",
    ]);
    await page.getByLabel("User", { exact: true }).selectOption("default user");
    await expect.poll(() => names(page)).toEqual(["main:twin"]);
    await page.reload();
    await expect.poll(() => names(page)).toEqual(["main:twin"]);

    await page.getByLabel("User", { exact: true }).selectOption("bob");
    await page.getByRole("main").getByRole("link", { name: "main:twin · bob" }).click();
    await page.getByText("repeat hello").first().waitFor();
    expect(page.url()).toContain("user=bob");

    await page.goto(`${gateway.url}/#/runs`);
    await runs(page).filter({ hasText: "main:twin · bob" }).first().click();
    await page.getByRole("heading", { name: "Steps" }).waitFor();
    expect(page.url()).toContain("user=bob");
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "Steps" }).waitFor({ state: "detached" });
    expect(page.url()).not.toContain("user=");
  });
});

describe.skipIf(browser === null)("runs in the console", () => {
  test("are retried after a failure, and aborted in bulk", async () => {
    const failed: string[] = [];
    for (const key of ["main", "agent:main:also-failing"]) {
      const { runId } = await send("fail with status 400", {}, key);
      await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
      failed.push(runId);
    }
    const page = await open("/runs?show=failed");
    await runs(page).nth(1).waitFor();
    // If no row has the focus, the key applies to the first one.
    await page.keyboard.press("x");
    await page.getByRole("button", { name: /^Retry 1/ }).waitFor();
    await runs(page).nth(1).press("x");
    await page.getByRole("button", { name: /^Retry 2/ }).waitFor();
    await page.keyboard.press("r");
    for (const runId of failed)
      await expect
        .poll(async () => (await gateway.call("runs.get", { runId })).run.retriedAs)
        .not.toBe(undefined);

    for (const user of users) await send("search for rooms", user);
    await page.goto(`${gateway.url}/#/runs?show=open`);
    await page.getByRole("heading").filter({ hasText: "Waiting3" }).waitFor();
    await page.getByLabel("Select all: Waiting").check();
    await page.getByRole("button", { name: /^Abort 3/ }).waitFor();
    await page.keyboard.press("a");
    await expect
      .poll(async () => {
        const { runs: open } = await gateway.call("runs.list", { states: ["aborted"], allUsers: true });
        return open.map(({ userId }) => userId ?? "").sort();
      })
      .toEqual(["", "ann", "bob"]);
  });

  test("are retried on the page of their session, which says in one sentence why the last one failed", async () => {
    const sessionKey = "agent:main:failing";
    const { runId } = await send("fail with status 400", {}, sessionKey);
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const { error } = (await gateway.call("runs.get", { runId })).run;
    const page = await open(sessionRoute(sessionKey));
    const failure = page.getByText("The last run failed:");
    await expect.poll(() => failure.innerText()).toContain("The rehearsal model was asked to fail.");
    expect(await failure.innerText()).not.toContain("Send a message");
    expect(error?.message).toContain("Send a message");
    const { token } = await gateway.call("tokens.create", { scopes: ["read"] });
    const reader = await open(sessionRoute(sessionKey), token);
    await reader.getByText("The last run failed:").waitFor();
    expect(await reader.getByRole("button", { name: "Retry" }).count()).toBe(0);
    await page.getByRole("button", { name: "Retry" }).click();
    await expect
      .poll(async () => (await gateway.call("runs.get", { runId })).run.retriedAs)
      .not.toBe(undefined);
    // The retry fails again, but the next run succeeds, and the page is updated.
    const { runId: last } = await send("repeat all is well", {}, sessionKey);
    await gateway.call("agent.wait", { runId: last, timeoutMs: 150_000 });
    await failure.waitFor({ state: "detached" });
  });

  test("say why they wait: for a retry, for the run ahead, and for a slot of their lane", async () => {
    const page = await open("/runs?show=open");
    const line = (text: string) => page.getByRole("main").getByRole("listitem").filter({ hasText: text });
    const session = (name: string) => `agent:busy:${name}`;
    const { runId: first } = await send("first of all", {}, session("one"));
    const retry = line("first of all");
    await retry.getByText(/^Waiting to retry the model after a failure\. \(in \d+ min\)/).waitFor();
    const { runId: next } = await send("right after it", {}, session("one"));
    await line("right after it").getByText("Waiting for 1 run ahead of it in this session.").waitFor();
    const { runId: other } = await send("elsewhere", {}, session("two"));
    await line("elsewhere")
      .getByText(/Waiting to retry/)
      .waitFor();
    const { runId: last } = await send("no room", {}, session("three"));
    await line("no room")
      .getByText("Waiting for a free slot in the lane main, which runs at most 2 at a time.")
      .waitFor();

    await line("right after it").getByRole("link", { name: "Open run" }).click();
    const panel = page.getByRole("complementary").filter({ hasText: first });
    await panel.getByText("first of all").waitFor();
    await panel.getByText(/^Waiting to retry/).waitFor();
    await page.keyboard.press("Escape");
    await retry.getByRole("link", { name: "Show details" }).click();
    await panel.getByRole("button", { name: "Abort" }).waitFor();
    await line("no room").getByRole("link", { name: "Show the lane" }).click();
    const lane = page.getByRole("list", { name: "Lanes" }).getByRole("link", { name: /Messages/ });
    await lane.and(page.locator("[aria-current=true]")).waitFor();
    // Two runs have a slot. One waits for a slot, and one for the run ahead of it.
    const { lanes } = await gateway.call("lanes.list", {});
    expect(lanes[0]).toMatchObject({ lane: "main", limit: 2, running: 2 });
    const figures = ["Messages", "2/2", `${lanes[0]?.queued} waiting`];
    await expect.poll(async () => (await lane.innerText()).split(/\n+/)).toEqual(figures);
    await expect.poll(() => lane.locator("rect[class*=taken]").count()).toBe(2);
    for (const runId of [last, other, next]) await gateway.call("runs.abort", { runId });
    await retry.getByRole("link", { name: "Show details" }).click();
    await panel.getByRole("button", { name: "Abort" }).click();
    await panel.getByText("aborted", { exact: true }).first().waitFor();
    expect(await gateway.call("agent.wait", { runId: first, timeoutMs: 150_000 })).toMatchObject({
      state: "aborted",
    });
    await line("no room").getByText("aborted", { exact: true }).waitFor();
    expect(
      await line("no room")
        .getByText(/Waiting for/)
        .count(),
    ).toBe(0);
  });

  /** Reasons for which a process must be missing, or two runs must wait for each other. */
  const whys = [
    { kind: "app", text: "Waiting for a process of the app shop.", link: "Show details" },
    { kind: "owner", text: "It will start as soon as a process claims it.", link: "Show details" },
    { kind: "stopping", text: "It has been asked to stop.", link: "Show details" },
    { kind: "runs", text: "Waiting until 1 run has ended.", runIds: ["run-7"], link: "Open run" },
    {
      kind: "runs",
      text: "Sleeping until 2 runs have ended.",
      runIds: ["run-7", "run-8"],
      retryAt: 90_000,
      within: /\(within 1 min/,
      link: "Open the first run",
    },
    {
      kind: "runs",
      text: "Waiting for announcements that can share its turn.",
      retryAt: 30_000,
      within: /\(within \d+ s\)/,
      link: "Show details",
    },
  ] as const;

  test("have a sentence and a link for every reason, and an action if their process is missing", async () => {
    const { runId } = await send("search for rooms");
    const page = await open("/runs?show=open");
    const waiting = (index: number) => {
      const { kind, text, runIds, retryAt } = { runIds: undefined, retryAt: undefined, ...whys[index] };
      const at = retryAt === undefined ? {} : { retryAt: Date.now() + retryAt };
      const app = kind === "app" ? { waitsForApp: "shop" } : {};
      return { state: "queued", runId: `why-${index}`, why: { kind, text, runIds, ...at }, ...app };
    };
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((text) => server.send(String(text).replaceAll(/why-\d/g, runId)));
      server.onMessage((text) => {
        const message = JSON.parse(String(text));
        const { payload } = message;
        const run = payload?.runs?.[0];
        if (run !== undefined) payload.runs = whys.map((_, index) => ({ ...run, ...waiting(index) }));
        if (payload?.run !== undefined) Object.assign(payload.run, waiting(0));
        socket.send(JSON.stringify(message));
      });
    });
    await page.reload();
    const lines = page.getByRole("main").getByRole("listitem");
    for (const [index, { text, link, ...why }] of whys.entries()) {
      const line = lines.filter({ hasText: text });
      await line.getByText(text).waitFor();
      if ("within" in why) await expect.poll(() => line.innerText()).toMatch(why.within);
      const target = "runIds" in why ? why.runIds[0] : `why-${index}`;
      const href = await line.getByRole("link", { name: link, exact: true }).getAttribute("href");
      expect(new URLSearchParams(href?.split("?")[1]).get("run")).toBe(target);
    }
    await lines.filter({ hasText: "the app shop" }).getByRole("link", { name: "Show details" }).click();
    await page.getByRole("button", { name: "Let any process run it" }).waitFor();
    await gateway.call("runs.abort", { runId });
  });

  test("show the time that they are sorted by", async () => {
    const { runId } = await send("repeat a long story");
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const page = await open("/runs");
    // This run took two days.
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((text) => {
        const message = JSON.parse(String(text));
        for (const run of message.payload?.runs ?? [])
          if (run.runId === runId) run.createdAt -= 2 * 86_400_000;
        socket.send(JSON.stringify(message));
      });
    });
    await page.reload();
    const line = page.getByRole("main").getByRole("listitem").filter({ hasText: "repeat a long story" });
    await line.locator("time", { hasText: /^\w+ \d+$/ }).waitFor();
  });

  test("say what is empty, and what a lane is for", async () => {
    const page = await open("/runs?show=failed&lane=cron");
    await page.getByText("No run has failed in the lane “Schedules”.").waitFor();
    const lanes = page.getByRole("list", { name: "Lanes" }).getByRole("link");
    await expect
      .poll(async () => (await lanes.allInnerTexts()).map((text) => text.split("\n")[0]))
      .toEqual(["Messages", "Sub-agents", "Schedules", "Exchanges"]);
    await page.goto(`${gateway.url}/#/runs?show=open&lane=cron`);
    await page.getByText("Nothing is running or waiting in the lane “Schedules”.").waitFor();
  });

  test("have no actions for a token that may only read, and the page says why", async () => {
    const { token } = await gateway.call("tokens.create", { scopes: ["read"] });
    await send("search for rooms");
    const page = await open("/runs?tab=approvals", token);
    await page.getByText("Read-only: this token cannot send messages").waitFor();
    await page.getByRole("main").getByText("session_search").first().waitFor();
    expect(
      await page
        .getByRole("main")
        .getByRole("button", { name: /Approve|Deny/ })
        .count(),
    ).toBe(0);
    await page.goto(`${gateway.url}/#/runs`);
    await runs(page).first().focus();
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    expect(await page.getByRole("button", { name: /Abort|Retry/ }).count()).toBe(0);
    await page.goto(`${gateway.url}/#/sessions`);
    await sessions(page).locator("[data-roving]").first().focus();
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    expect(await page.getByRole("button", { name: /Archive|Approve|Deny/ }).count()).toBe(0);
  });
});

describe.skipIf(browser === null)("approvals in the console", () => {
  test("say that there are more than the page shows, which come when the first ones are answered", async () => {
    const { runId } = await send("search for rooms");
    const page = await open("/runs?tab=approvals");
    await page.getByRole("main").getByText("session_search").first().waitFor();
    expect(await page.getByText("newest approvals are shown").count()).toBe(0);
    const answered = new Set<string>();
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      const many = Array.from({ length: 501 }, (_, index) => `many ${index}`);
      socket.onMessage((text) => {
        const { id, method, params } = JSON.parse(String(text));
        if (method !== "approvals.resolve") return server.send(text);
        answered.add(params.approvalId);
        socket.send(JSON.stringify({ type: "res", id, ok: true, payload: params }));
      });
      server.onMessage((text) => {
        const { payload, ...message } = JSON.parse(String(text));
        const [first] = payload?.approvals ?? [];
        if (first === undefined || first.answer !== undefined) return socket.send(text);
        // The gateway returns 500 at most, the newest first.
        const approvals = many
          .filter((approvalId) => !answered.has(approvalId))
          .slice(0, 500)
          .map((approvalId) => ({ ...first, approvalId, arguments: { query: approvalId } }));
        socket.send(JSON.stringify({ ...message, payload: { count: approvals.length, approvals } }));
      });
    });
    await page.reload();
    const notice = page.getByText("Only the 500 newest approvals are shown.");
    await notice.waitFor();
    const question = (text: string) =>
      page
        .getByRole("main")
        .getByRole("article")
        .filter({ has: page.getByText(text, { exact: true }) });
    expect(await question("many 500").count()).toBe(0);
    await question("many 0").locator("[data-act=approve]:not([aria-disabled])").click();
    await expect.poll(() => [...answered]).toEqual(["many 0"]);
    // An event, after which the page reads the list again.
    const { runId: next } = await send("search for more rooms", {}, "agent:main:more");
    await page.mouse.move(5, 5);
    await question("many 500").waitFor();
    expect(await question("many 0").count()).toBe(0);
    for (const each of [runId, next]) await gateway.call("runs.abort", { runId: each });
  });
});

describe.skipIf(browser === null)("the budget of a request", () => {
  test("is in the panel of each of its runs", async () => {
    const sessionKey = "agent:main:budget";
    const { runId } = await send("spawn one helper to repeat hello", {}, sessionKey);
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    const page = await open("/runs");
    await runs(page).filter({ hasText: "main:budget" }).last().click();
    const panel = page.getByRole("complementary").filter({ hasText: "Budget for the whole request" });
    const figures = panel.locator("dl", { hasText: "Hops" }).locator("dd");
    const { rootId } = (await gateway.call("runs.get", { runId })).run;
    // The helper and its announcement can come after the end of the run.
    const stored = async () => {
      const { runs: used, hops } = await gateway.call("runs.budget", { rootId });
      return [used, hops].map((each) => `${each.used} of ${each.allowed}`);
    };
    await expect.poll(async () => Number((await stored())[0]?.split(" ")[0])).toBeGreaterThan(1);
    const isShown = async () =>
      isDeepStrictEqual((await figures.allInnerTexts()).slice(0, 2), await stored());
    await expect.poll(isShown).toBe(true);
    await expect.poll(() => figures.count()).toBe(4);
  });
});

describe.skipIf(browser === null)("the outbox in the console", () => {
  test("lists messages that were not delivered with their errors, retries some, and discards others", async () => {
    const outbox = (page: Page, text: string) =>
      page.getByRole("main").getByRole("listitem").filter({ hasText: text });
    const stateOf = async (text: string) => {
      const { messages } = await gateway.call("outbox.list", { allUsers: true });
      return messages.find((message) => message.text.includes(text))?.state;
    };
    const page = await open("/runs?tab=outbox");
    await page.getByText("No channel messages are waiting for delivery.").waitFor();
    await askDesk("repeat the first answer");
    const first = outbox(page, "the first answer");
    await first.getByText("failed permanently", { exact: true }).waitFor();
    await expect.poll(() => first.innerText()).toMatch(/410.*1 attempt\./s);
    await askDesk("repeat the third answer");
    await outbox(page, "the third answer").getByText("failed permanently", { exact: true }).waitFor();
    deskStatus = 503;
    const pause = Promise.withResolvers<void>();
    deskPause = pause.promise;
    await askDesk("repeat the second answer");
    const second = outbox(page, "the second answer");
    await second.getByText("queued", { exact: true }).waitFor();
    await second.getByText("Waiting for its first delivery.").waitFor();
    pause.resolve();
    await expect.poll(() => second.innerText()).toMatch(/503.*attempts?\. The next one is in [\d.]+ \w+\./s);
    await askDesk("repeat the fourth answer");
    await outbox(page, "the fourth answer").getByText("queued", { exact: true }).waitFor();
    const other = await open("/runs?tab=outbox");
    await outbox(other, "the second answer").waitFor();
    // By keyboard alone. The messages that failed permanently are the first two rows.
    const box = "main li input[type=checkbox]";
    await tabTo(page, box);
    for (const key of ["ArrowDown", "ArrowDown", "x", "ArrowDown", "x"]) await page.keyboard.press(key);
    await page.getByRole("button", { name: "Discard 2" }).waitFor();
    await tabTo(page, "[data-act=discard]");
    await page.keyboard.press("Enter");
    for (const text of ["the second answer", "the fourth answer"])
      await expect.poll(() => stateOf(text)).toBe("dropped");
    // The other browser, which did not discard it, shows the same.
    await outbox(other, "the second answer").waitFor({ state: "detached" });
    await outbox(other, "the first answer").waitFor();

    deskStatus = 200;
    await page.mouse.move(5, 5);
    await second.waitFor({ state: "detached" });
    await page.reload();
    await first.waitFor();
    await tabTo(page, box);
    for (const key of ["x", "ArrowDown", "x"]) await page.keyboard.press(key);
    await page.getByRole("button", { name: /^Retry 2/ }).waitFor();
    await page.keyboard.press("r");
    for (const text of ["the first answer", "the third answer"])
      await expect.poll(() => stateOf(text)).toBe("delivered");
    await page.goto(`${gateway.url}/#/runs?tab=outbox&show=delivered`);
    await first.getByText("delivered", { exact: true }).waitFor();
    await page.goto(`${gateway.url}/#/runs?tab=outbox&show=all`);
    await second.getByText("discarded", { exact: true }).waitFor();
  });
});

/** Sends a message through the webhook, which receives the answer. */
async function askDesk(text: string): Promise<void> {
  const body = JSON.stringify({ text, peer: "17" });
  const [timestamp, messageId] = [String(Math.floor(Date.now() / 1000)), randomUUID()];
  const answer = await fetch(`${gateway.url}/channels/desk/inbound`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-skein-timestamp": timestamp,
      "x-skein-message-id": messageId,
      "x-skein-signature": signatureOf(secret, { timestamp, messageId, body }),
    },
    body,
  });
  expect(answer.status).toBe(202);
}

describe.skipIf(browser === null)("usage in the console", () => {
  /** Returns the token counts in the table's rows. */
  const tokens = async (page: Page) => {
    const cells = await page.getByRole("table").locator("tbody td:nth-child(6)").allInnerTexts();
    return cells.reduce((sum, text) => sum + Number(text.replaceAll(",", "")), 0);
  };

  test("has bars and rows that sum to the total, tokens without a price apart, and opens the sessions", async () => {
    // The runs of other tests can still be at work.
    const working = () => gateway.call("runs.list", { states: ["queued", "running"], allUsers: true });
    await expect.poll(async () => (await working()).runs).toEqual([]);
    const page = await open("/usage?by=user&days=bogus");
    const { total } = await gateway.call("sessions.usage", { allUsers: true });
    await expect.poll(() => tokens(page)).toBe(total.totalTokens);
    const bars = page.getByRole("list", { name: "Tokens by day" }).getByRole("link");
    const labels = await bars.evaluateAll((links) =>
      links.map((link) => link.getAttribute("aria-label") ?? ""),
    );
    const inBars = labels.map((label) =>
      Number((/: ([\d,]+) tokens/.exec(label)?.[1] ?? "").replaceAll(",", "")),
    );
    expect(inBars.reduce((sum, each) => sum + each, 0)).toBe(total.totalTokens);
    expect(labels.join()).toContain("500 without a price");
    await page.getByText("500 tokens").waitFor();
    await page.getByText(/in your time zone, Europe\/Berlin\. Today is \w+ \d+\./).waitFor();

    await page.getByRole("table").getByRole("link", { name: "ann" }).click();
    const spent = page.getByRole("table").getByRole("link", { name: "main:spent · ann" });
    await spent.waitFor();
    expect(await page.getByRole("table").getByText("bob").count()).toBe(0);
    await page.reload();
    await spent.click();
    await page.getByText("done").first().waitFor();
    expect(page.url()).toContain("user=ann");

    await page.goto(`${gateway.url}/#/usage?by=model`);
    await page.getByRole("table").getByRole("link", { name: "p/m" }).click();
    await expect.poll(() => tokens(page)).toBe(1500);
    await bars.last().click();
    await expect.poll(() => tokens(page)).toBe(total.totalTokens);
  });
});

describe.skipIf(browser === null)("the usage of a user without answers", () => {
  test("has two different numbers on its scale", async () => {
    const { token } = await gateway.call("tokens.create", { label: "new", scopes: ["read"], userId: "new" });
    const page = await open("/usage", token);
    await page.getByText("No usage in this period.").waitFor();
    expect(await page.locator("figure > div > span").allInnerTexts()).toEqual(["10", "5"]);
  });
});

describe.skipIf(browser === null)("the days of the usage", () => {
  // These places never have the same date.
  test.each(["Pacific/Kiritimati", "Pacific/Pago_Pago"])("are those of %s", async (timeZone) => {
    const { entries } = await gateway.call("sessions.entries", { key: "agent:main:spent", userId: "ann" });
    const at = entries.find(({ type }) => type === "message")?.timestamp ?? "";
    const day = new Intl.DateTimeFormat("en-CA", { timeZone }).format(new Date(at));
    const page = await browser.open(gateway, "/usage", { timeZone });
    const bar = page.getByRole("list", { name: "Tokens by day" }).getByRole("link", { name: `${day}: ` });
    await bar.click();
    await page.getByRole("heading", { name: `Sessions: ${day}` }).waitFor();
    await page.getByRole("table").getByRole("link", { name: "main:spent · ann" }).waitFor();
    await page.getByText(`in your time zone, ${timeZone}.`).waitFor();
    const other = new Date(new Date(`${day}T00:00Z`).getTime() + 86_400_000).toISOString().slice(0, 10);
    await page.goto(`${gateway.url}/#/usage?day=${other}`);
    await page.getByRole("heading", { name: `Sessions: ${other}` }).waitFor();
    await page.getByText("No usage in this period.").waitFor();
  });
});

describe.skipIf(browser === null)("tokens in the console", () => {
  test.each([360, 1280])("with long names fit into a page of %i pixels", async (width) => {
    await gateway.call("tokens.create", { label: "x".repeat(100), scopes: ["read"], userId: "u".repeat(60) });
    const page = await browser.open(gateway, "/access?tab=tokens", { width });
    await page.getByRole("table").getByText("x".repeat(100)).first().waitFor();
    const overflow = await page
      .getByRole("table")
      .evaluate(({ parentElement }) => (parentElement?.scrollWidth ?? 0) - (parentElement?.clientWidth ?? 0));
    expect(overflow).toBeLessThanOrEqual(0);
  });
});
