import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { openSkein } from "../../src/app.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import type { HeldModel } from "../support/held-model.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, home, startGateway, startModel } = await useConsole();
let model: HeldModel;
let gateway: GatewayProcess;

beforeAll(async () => {
  const skein = await openSkein({ dir: `${home.path}/root`, cwd: home.path, quiet: true });
  await skein.session({ agentId: "main", sessionId: "long" }).append([
    { role: "user", content: "go on" },
    ...Array.from({ length: 80 }, (_, index) => ({
      role: "assistant" as const,
      content: [{ type: "text" as const, text: `Remark ${index}\n\nwith a second paragraph` }],
    })),
  ]);
  await skein.close();
  model = await startModel();
  const config = `${model.config}agents: { main: { tools: { ask: [session_search] } } }\n`;
  gateway = await startGateway({ config });
});

const keyOf = (name: string) => `agent:main:session:${name}`;
const open = (name: string) => browser.open(gateway, sessionRoute(keyOf(name)));
const transcript = (page: Page) => page.getByRole("region", { name: "Transcript", exact: true });
const rowWith = (page: Page, text: string) =>
  transcript(page).locator("[data-entry-id]").filter({ hasText: text });
const composer = (page: Page) => page.getByLabel("Message", { exact: true });
/** Starts a run that asks for approval of a search for the name. */
async function ask(name: string): Promise<string> {
  const before = model.count;
  const message = { sessionKey: keyOf(name), message: "search", idempotencyKey: name };
  const { runId } = await gateway.call("chat.send", message);
  (await model.request(before)).callTool("session_search", { query: name });
  return runId;
}
/** How the runs' approvals were answered. */
async function answersOf(runs: readonly string[]) {
  const lists = runs.map((runId) => gateway.call("approvals.list", { open: false, runId }));
  return (await Promise.all(lists)).map(({ approvals: [each] }) => each?.answer);
}
/** Stops the page's clock, because a busy machine could otherwise delay a second press until it is allowed. */
const stopClock = async (page: Page) => page.clock.pauseAt(await page.evaluate(() => Date.now() + 1000));
/** The questions that wait for an answer. The tab also lists answered ones. */
const questions = (page: Page) => page.getByRole("main").locator("article[data-open]");

describe.skipIf(browser === null)("an approval in the console", () => {
  test("says how much of a long call is hidden, and shows all of it on the desk, in its tab and in its session", async () => {
    const before = model.count;
    const message = { sessionKey: keyOf("call"), message: "search", idempotencyKey: "long call" };
    await gateway.call("chat.send", message);
    const query = `rooms ${"with a view ".repeat(200)}; then drop the table; and more ${"words ".repeat(100)}end`;
    (await model.request(before)).callTool("session_search", { query });
    const route = sessionRoute(keyOf("call"));
    for (const at of [route, "/sessions", "/runs?tab=approvals"]) {
      const page = await browser.open(gateway, at, { width: 360, height: 740 });
      const call = page
        .getByRole("main")
        .getByRole("article", { name: `session_search in ${keyOf("call")}`, exact: true });
      await call.getByText("rooms with a view").waitFor();
      expect(await call.innerText()).not.toContain("drop the table");
      await call.getByRole("button", { name: /^… [\d,]+ characters hidden. Show more$/ }).focus();
      await page.keyboard.press("Enter");
      await call.getByText("drop the table").waitFor();
      expect(await call.locator("dd").innerText()).toBe(query);
      expect(await call.getByText("hidden").count()).toBe(0);
    }
  });

  test("never moves while the rest of its page arrives", async () => {
    const before = model.count;
    const sessionKey = "agent:main:main";
    const send = (text: string) =>
      gateway.call("chat.send", { sessionKey, message: text, idempotencyKey: `still ${text}` });
    const { runId: greeting } = await send("hello");
    (await model.request(before)).finish("Hello.");
    await gateway.call("agent.wait", { runId: greeting, timeoutMs: 150_000 });
    const { runId } = await send("search");
    (await model.request(before + 1)).callTool("session_search", { query: "rooms" });
    for (const width of [1280, 360]) {
      const page = await browser.open(gateway, "/search", {
        width,
        height: 740,
        hasTouch: width === 360,
      });
      const [transcripts, hints] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      await page.routeWebSocket(/./, (socket) => {
        const server = socket.connectToServer();
        socket.onMessage(async (text) => {
          if (/"sessions\.entries"/.test(String(text))) await transcripts.promise;
          if (/"(chat\.history|sessions\.tree)"/.test(String(text))) await hints.promise;
          server.send(text);
        });
      });
      await page.addInitScript(() => {
        const tops = new Set<number>();
        const look = () => {
          const approve = document.querySelector("#content article[data-open] button");
          if (approve !== null) tops.add(approve.getBoundingClientRect().top);
          requestAnimationFrame(look);
        };
        look();
        Object.assign(globalThis, { tops });
      });
      await page.goto(`${gateway.url}/#/`);
      await page.reload();
      await page.getByRole("link", { name: /^Sessions\s*1\s*needs you$/ }).waitFor();
      // In this time, a question without its composer would be painted.
      await page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => setTimeout(painted))));
      transcripts.resolve();
      const approve = questions(page).getByRole("button", { name: "Approve" });
      await Promise.all([approve.waitFor(), composer(page).waitFor()]);
      hints.resolve();
      await page.getByRole("link", { name: "See what the model saw" }).waitFor();
      await send(`also at ${width} pixels`);
      await page.getByText(`also at ${width} pixels`).waitFor();
      const { y } = (await approve.boundingBox()) ?? {};
      expect(await page.evaluate("[...tops]")).toEqual([y]);
    }
    await gateway.call("runs.abort", { runId });
  });

  test("does not move when a message could not be sent", async () => {
    const before = model.count;
    const sessionKey = keyOf("unsent");
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "look",
      idempotencyKey: "unsent",
    });
    (await model.request(before)).callTool("session_search", { query: "rooms" });
    const page = await open("unsent");
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((text) => {
        const { id, method } = JSON.parse(String(text));
        const error = { code: "internal", message: "The disk is full." };
        if (method !== "chat.send") server.send(text);
        else socket.send(JSON.stringify({ type: "res", id, ok: false, error }));
      });
    });
    await page.reload();
    const approve = questions(page).getByRole("button", { name: "Approve" });
    await approve.waitFor();
    await composer(page).fill("not now");
    const place = await approve.boundingBox();
    await page.keyboard.press("Enter");
    const failure = page.getByRole("alert").filter({ hasText: "The disk is full." });
    await failure.waitFor();
    expect(await approve.boundingBox()).toEqual(place);
    await failure.getByRole("button", { name: "Dismiss" }).click();
    await failure.waitFor({ state: "detached" });
    expect(await approve.boundingBox()).toEqual(place);
    expect(await composer(page).inputValue()).toBe("not now");
    await gateway.call("runs.abort", { runId });
  });

  test("shows the first of very many arguments and the number of the others, and can be answered", async () => {
    const before = model.count;
    const sessionKey = keyOf("arguments");
    const message = { sessionKey, message: "search", idempotencyKey: "many arguments" };
    const { runId } = await gateway.call("chat.send", message);
    const names = Array.from({ length: 2000 }, (_, at) => [`k${at}`, at] as const);
    (await model.request(before)).callTool("session_search", Object.fromEntries(names));
    for (const at of ["/sessions", "/runs?tab=approvals", sessionRoute(sessionKey)]) {
      const page = await browser.open(gateway, at);
      const call = questions(page);
      const more = (hidden: string) =>
        call.getByRole("button", { name: `… ${hidden} more arguments hidden. Show more` });
      await more("1,980").waitFor();
      const isInView = async () => {
        const { y = -1 } = (await call.getByRole("button", { name: "Approve" }).boundingBox()) ?? {};
        return y > 0 && y < 780;
      };
      await expect.poll(isInView).toBe(true);
      await more("1,980").click();
      await more("1,780").waitFor();
      expect(await call.locator("dt").allInnerTexts()).toEqual(names.slice(0, 220).map(([name]) => name));
      expect(await page.locator("*").count()).toBeLessThan(3000);
      if (at !== sessionRoute(sessionKey)) continue;
      await call.getByRole("button", { name: "Deny…" }).click();
      await page.keyboard.press("Enter");
      await page
        .getByRole("region", { name: "Needs you" })
        .getByText(/^Denied just now/)
        .waitFor();
    }
    const { approvals } = await gateway.call("approvals.list", { open: false, runId });
    expect(approvals.map((approval) => approval.answer)).toEqual(["denied"]);
    (await model.request(before + 1)).finish("Done.");
  });

  test("folds a long name, and shows many arguments in steps that grow", async () => {
    const before = model.count;
    const message = { sessionKey: keyOf("named"), message: "search", idempotencyKey: "long name" };
    await gateway.call("chat.send", message);
    const long = `first${"n".repeat(300_000)}last`;
    const others = Array.from({ length: 5000 }, (_, at) => [`k${at}`, at] as const);
    (await model.request(before)).callTool("session_search", { [long]: 1, ...Object.fromEntries(others) });
    const page = await open("named");
    const name = questions(page).locator("dt").first();
    await name.getByRole("button", { name: /^… [\d,]+ characters hidden. Show more$/ }).waitFor();
    const shown = await name.innerText();
    expect([shown.length < 200, shown.startsWith("firstn"), shown.endsWith("nlast")]).toEqual([
      true,
      true,
      true,
    ]);
    const more = questions(page).getByRole("button", { name: /more arguments hidden. Show more$/ });
    const counts: number[] = [];
    while ((await more.count()) > 0) {
      const before = await questions(page).locator("dt").count();
      await more.evaluate((button) => (button as HTMLButtonElement).click());
      await expect.poll(() => questions(page).locator("dt").count()).toBeGreaterThan(before);
      counts.push(await questions(page).locator("dt").count());
    }
    expect(counts).toEqual([220, 1020, 4220, 5001]);
    const { approvals } = await gateway.call("approvals.list", {});
    for (const { approvalId } of approvals)
      await gateway.call("approvals.resolve", { approvalId, answer: "denied", note: "too long" });
    (await model.request(before + 1)).finish("Too long, then.");
    await rowWith(page, "Too long, then.").waitFor();
    await rowWith(page, "This call was not approved. A person rejected it and said: too long").waitFor();
  });

  test("says that another call needs the user while the pointer is on an answered one, and moves nothing", async () => {
    const before = model.count;
    const search = async (query: string, index: number) => {
      await gateway.call("chat.send", { sessionKey: keyOf("two"), message: query, idempotencyKey: query });
      (await model.request(index)).callTool("session_search", { query });
    };
    await search("the first", before);
    const page = await open("two");
    const needsYou = page.getByRole("region", { name: "Needs you" });
    await needsYou.getByRole("button", { name: "Approve" }).click();
    await needsYou.getByText(/^Approved just now/).waitFor();
    const first = needsYou.getByRole("article").first();
    const place = await first.boundingBox();
    (await model.request(before + 1)).finish("The first is done.");
    await rowWith(page, "The first is done.").waitFor();
    await search("the second", before + 2);
    const count = needsYou.getByRole("button", { name: "1 more needs you" });
    await count.waitFor();
    expect(await first.boundingBox()).toEqual(place);
    expect(await needsYou.getByRole("button", { name: "Approve" }).count()).toBe(0);
    const { x = 0, y = 0 } = (await count.boundingBox()) ?? {};
    const name = first.getByRole("group", { name: "Path from the root" }).getByRole("link").last();
    const { x: left = 0, width = 0 } = (await name.boundingBox()) ?? {};
    expect(left + width).toBeLessThan(x);
    await page.mouse.move(x + 10, y + 10);
    await page.mouse.down();
    await page.mouse.up();
    await needsYou.getByText("the second").waitFor();
    await needsYou.getByRole("button", { name: "Approve" }).waitFor();
    const pointed = await page.evaluate(
      ([left, top]) => document.elementFromPoint(left ?? 0, top ?? 0)?.closest("button")?.innerText ?? "none",
      [x + 10, y + 10],
    );
    expect(pointed).toBe("none");
    await needsYou.getByRole("button", { name: "Approve" }).click();
    (await model.request(before + 3)).finish("Both are done.");
    await rowWith(page, "Both are done.").waitFor();
  });

  test("stays in front of newer ones with its keys, and is not answered by a press for the one before it", async () => {
    for (const [index, at] of ["/sessions", "/runs?tab=approvals"].entries()) {
      const [first, second] = [`first-${index}`, `second-${index}`];
      const runs = [await ask(first)];
      const page = await browser.open(gateway, at, { width: 360, height: 740, hasTouch: true });
      await page.clock.install();
      await questions(page).getByText(first, { exact: true }).waitFor();
      runs.push(await ask(second));
      const asked = model.count;
      await questions(page).getByText(second, { exact: true }).waitFor();
      expect(await questions(page).locator("dd").allInnerTexts()).toEqual([first, second]);
      await expect.poll(() => questions(page).first().locator("kbd").count()).toBe(2);
      expect(await questions(page).last().locator("kbd").count()).toBe(0);
      const approve = questions(page).first().getByRole("button", { name: "Approve" });
      const topOf = () => approve.boundingBox().then((box) => box?.y);
      const place = await topOf();
      await stopClock(page);
      await approve.tap();
      await expect.poll(() => questions(page).locator("dd").allInnerTexts()).toEqual([second]);
      await expect.poll(() => questions(page).locator("kbd").count()).toBe(2);
      await expect.poll(topOf).toBe(place);
      // The second press of a double tap, and of the key.
      await page.clock.runFor(300);
      await approve.dispatchEvent("click");
      await page.keyboard.press("a");
      await page.clock.resume();
      const deny = questions(page).getByRole("button", { name: "Deny…" });
      await deny.tap();
      await page.getByLabel("Reason, for the model (optional)").fill("no");
      const cancel = questions(page).getByRole("button", { name: "Cancel" });
      const { x = 0, width = 0 } = (await cancel.boundingBox()) ?? {};
      expect(x + width).toBeLessThanOrEqual(360);
      await cancel.tap();
      await deny.tap();
      await page.keyboard.press("Enter");
      await expect.poll(() => questions(page).count()).toBe(0);
      expect(await answersOf(runs)).toEqual(["approved", "denied"]);
      // Both runs go on. Otherwise, their requests could be taken for those of the next round.
      for (const number of [asked, asked + 1]) (await model.request(number)).finish("Done.");
    }
  });

  test("is not answered by the second press of a key that answered the one after it", async () => {
    const runs = [await ask("upper"), await ask("lower")];
    const asked = model.count;
    const page = await browser.open(gateway, "/runs?tab=approvals", { hasTouch: true });
    await page.clock.install();
    await questions(page).getByText("lower", { exact: true }).tap();
    await expect.poll(() => questions(page).last().locator("kbd").count()).toBe(2);
    await stopClock(page);
    await page.keyboard.press("a");
    await expect.poll(() => questions(page).locator("dd").allInnerTexts()).toEqual(["upper"]);
    await expect.poll(() => questions(page).locator("kbd").count()).toBe(2);
    await page.clock.runFor(300);
    await page.keyboard.press("a");
    await page.clock.runFor(300);
    await page.keyboard.press("d");
    await page.keyboard.press("Enter");
    await expect.poll(() => questions(page).count()).toBe(0);
    expect(await answersOf(runs)).toEqual(["denied", "approved"]);
    for (const number of [asked, asked + 1]) (await model.request(number)).finish("Done.");
  });

  test("leaves the end of the transcript in view after its answer, while the agent goes on", async () => {
    const before = model.count;
    const page = await open("long");
    await rowWith(page, "Remark 79").waitFor();
    const isAtEnd = () =>
      transcript(page).evaluate((list) => list.scrollHeight - list.clientHeight - list.scrollTop < 1);
    await gateway.call("chat.send", {
      sessionKey: keyOf("long"),
      message: "search",
      idempotencyKey: "follow",
    });
    (await model.request(before)).callTool("session_search", { query: "rooms\n".repeat(30) });
    const question = page.getByRole("region", { name: "Needs you" });
    await question.getByRole("button", { name: "Approve" }).waitFor();
    await expect.poll(isAtEnd).toBe(true);
    await question.getByRole("button", { name: "Approve" }).click();
    const answering = await model.request(before + 1);
    for (let step = 0; step < 30; step += 1) {
      answering.stream(`paragraph ${step}\n\n`);
      await page.getByText(`paragraph ${step}`, { exact: true }).first().waitFor({ state: "attached" });
      // The question leaves in the middle of the answer.
      if (step === 10) await page.mouse.move(600, 200);
      if (step === 10) await question.waitFor({ state: "detached" });
      // A message of several lines is being written.
      if (step === 20) await composer(page).fill("one\ntwo\nthree\nfour\nfive");
      if (step > 20) await composer(page).press("x");
      await expect.poll(isAtEnd).toBe(true);
    }
    answering.finish("the last words");
    await rowWith(page, "the last words").waitFor();
    await expect.poll(isAtEnd).toBe(true);
  });

  test("cannot be answered, and no session archived, while the gateway is offline, and nothing moves", async () => {
    const before = model.count;
    const sessionKey = keyOf("offline");
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "search",
      idempotencyKey: "offline",
    });
    (await model.request(before)).callTool("session_search", { query: "rooms" });
    const page = await browser.open(gateway, "/sessions");
    const approve = questions(page).getByRole("button", { name: "Approve" });
    const deny = questions(page).getByRole("button", { name: "Deny…" });
    const long = page.getByRole("main").locator("li").filter({ hasText: "session:long" });
    await long.getByRole("checkbox").check();
    const archive = page.getByRole("button", { name: "Archive" });
    const changes = [approve, deny, archive];
    for (const button of changes) await expect.poll(() => button.getAttribute("aria-disabled")).toBe(null);
    const places = () => Promise.all(changes.map((button) => button.boundingBox()));
    const shown = await places();
    const port = Number(new URL(gateway.url).port);
    await gateway.stop("SIGKILL");
    try {
      await page.getByText("Gateway offline. Reconnecting…").waitFor();
      expect(await places()).toEqual(shown);
      for (const button of changes) {
        await expect.poll(() => button.getAttribute("aria-disabled")).toBe("true");
        expect(await button.getAttribute("title")).toBe("Not possible right now: the gateway is offline.");
        await button.click({ force: true });
      }
      for (const key of ["a", "d", "e"]) await page.keyboard.press(key);
      expect(await long.getByRole("checkbox").isChecked()).toBe(true);
    } finally {
      gateway = await startGateway({ port });
    }
    await page.getByText("Gateway offline. Reconnecting…").waitFor({ state: "detached" });
    await expect.poll(() => approve.getAttribute("aria-disabled")).toBe(null);
    expect(await places()).toEqual(shown);
    // A call that was held would have been sent before this one.
    await deny.click();
    await page.keyboard.press("Enter");
    await expect.poll(() => questions(page).count()).toBe(0);
    const { approvals } = await gateway.call("approvals.list", { open: false, runId });
    expect(approvals.map(({ answer }) => answer)).toEqual(["denied"]);
    const { sessions } = await gateway.call("sessions.list", { keys: [keyOf("long")], archived: false });
    expect(sessions.length).toBe(1);
    (await model.request(before + 1)).finish("Done.");
  });
});
