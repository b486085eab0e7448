import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Page } from "playwright-core";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import type { HeldModel } from "../support/held-model.ts";
import { assistantMessage, sessionText, userLine } from "../support/session-text.ts";
import type { PageOptions } from "./console-browser.ts";
import { firstRow, sessionRoute, settled, shownEntries, transcript } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway, startModel } = await useConsole();
let model: HeldModel;
let gateway: GatewayProcess;
let key = "";
let asked = 0;
let sessions = 0;

beforeAll(async () => {
  model = await startModel();
  gateway = await startGateway({ config: model.config });
});
beforeEach(() => {
  sessions += 1;
  asked = model.count;
  key = `agent:main:page-${sessions}`;
});

const open = (query: Record<string, string> = {}, options: PageOptions = {}) =>
  browser.open(gateway, sessionRoute(key, "", query), options);

/** Sends a message and returns the resulting model request, which the test answers. */
async function ask(message: string) {
  const { runId } = await gateway.call("chat.send", {
    sessionKey: key,
    message,
    idempotencyKey: `${key} ${message}`,
  });
  return { runId, request: await nextRequest() };
}

async function nextRequest() {
  const request = await model.request(asked);
  asked += 1;
  return request;
}

const ended = (runId: string) => gateway.call("agent.wait", { runId, timeoutMs: 150_000 });

/** Adds notes to the session without calling a model. */
async function fill(count: number, text: (index: number) => string): Promise<void> {
  const { runId, request } = await ask("begin");
  request.finish("Begun.");
  await ended(runId);
  let last = runId;
  for (let index = 0; index < count; index += 1)
    ({ runId: last } = await gateway.call("chat.inject", {
      sessionKey: key,
      message: text(index),
      idempotencyKey: `${key} note ${index}`,
    }));
  // Until then, the page shows some of the notes as queued messages.
  await ended(last);
}

const offline = "Gateway offline. Reconnecting…";
const storedIds = async () => {
  const { entries } = await gateway.call("sessions.entries", { key, limit: 1000 });
  return entries.filter(({ type }) => type === "message").map(({ id }) => id);
};

/** Kills the gateway, and starts it on the same port even if the test fails meanwhile. */
async function whileKilled(act: () => Promise<unknown>): Promise<void> {
  const port = Number(new URL(gateway.url).port);
  await gateway.stop("SIGKILL");
  try {
    await act();
  } finally {
    gateway = await startGateway({ port });
  }
}

/** The unfinished answers that a killed gateway would leave behind. */
function storedTexts(): unknown[] {
  const database = new DatabaseSync(join(gateway.root, "work.db"), { readOnly: true });
  const rows = database.prepare("SELECT text FROM run_partials").all();
  database.close();
  return rows.map(({ text }) => text);
}

describe.skipIf(browser === null)("a session in the console", () => {
  test("ignores the scroll position of a transcript that is hidden while another view loads", async () => {
    await fill(1, () => "A note");
    const page = await open();
    const list = await transcript(page).elementHandle();
    const loads = Promise.withResolvers<void>();
    await page.route(/usage-page/, async (route) => {
      await loads.promise;
      await route.continue();
    });
    await page.getByRole("link", { name: "Usage" }).click();
    await list?.waitForElementState("hidden");
    await list?.evaluate((element) => element.dispatchEvent(new Event("scroll")));
    loads.resolve();
    await page.getByText("Unpriced").first().waitFor();
  });

  test("keeps the first visible row in its place while an answer grows, one pixel above the end", async () => {
    await fill(40, (index) => `Note ${index}\n\nwith a second paragraph`);
    const page = await open();
    await page.getByText("Note 39").first().waitFor();
    await settled(page);
    await transcript(page).evaluate((list) => {
      list.scrollTop = list.scrollHeight - list.clientHeight - 1;
    });
    await settled(page);
    const before = await firstRow(page);
    const { request } = await ask("go on");
    for (let step = 0; step < 20; step += 1) {
      request.stream(`line ${step} of the answer\n\n`);
      await page.getByText(`line ${step} of the answer`).first().waitFor({ state: "attached" });
      expect(await firstRow(page)).toEqual(before);
    }
    request.finish("end");
    await page.getByText("end", { exact: true }).first().waitFor({ state: "attached" });
    expect(await firstRow(page)).toEqual(before);
  });

  test("stops following an answer when the reader scrolls up by one pixel while it grows", async () => {
    await fill(40, (index) => `Note ${index}`);
    const page = await open();
    await page.getByText("Note 39").first().waitFor();
    await settled(page);
    const { request } = await ask("go on");
    request.stream("The beginning\n\n");
    await page.locator("[data-live]").getByText("The beginning").waitFor();
    await settled(page);
    // Right after the page has scrolled to the new end, so that the browser reports both in one event.
    const watching = await transcript(page).evaluateHandle((list) => {
      const { scrollHeight } = list;
      const { promise, resolve } = Promise.withResolvers<void>();
      const observer = new ResizeObserver(() => {
        if (list.scrollHeight === scrollHeight) return;
        observer.disconnect();
        list.scrollTop -= 1;
        resolve();
      });
      observer.observe(list.querySelector("li:last-child") as Element);
      return { promise };
    });
    request.stream("of a paragraph\n\n");
    await watching.evaluate(({ promise }) => promise);
    const before = await firstRow(page);
    for (let step = 0; step < 5; step += 1) {
      request.stream(`line ${step} of the answer\n\n`);
      await page.getByText(`line ${step} of the answer`).first().waitFor({ state: "attached" });
    }
    await settled(page);
    expect(await firstRow(page)).toEqual(before);
  });

  test("follows an answer at the end", async () => {
    await fill(20, (index) => `Note ${index}`);
    const page = await open();
    await page.getByText("Note 19").first().waitFor();
    const { request } = await ask("go on");
    for (let step = 0; step < 30; step += 1) request.stream(`paragraph ${step}\n\n`);
    request.finish("the last words");
    const last = page.getByText("the last words");
    await last.waitFor();
    await expect
      .poll(() => last.evaluate((row) => row.getBoundingClientRect().bottom <= innerHeight))
      .toBe(true);
  });

  test("opened in the middle of an answer shows the text so far, and one row per entry at the end", async () => {
    const { runId, request } = await ask("tell me a story");
    request.stream("Once upon a time ");
    await expect
      .poll(async () => (await gateway.call("chat.live", { sessionKey: key })).runs[0]?.text)
      .toContain("Once upon a time");
    const page = await open();
    await page.getByText("Once upon a time").first().waitFor();
    const watching = await transcript(page).evaluateHandle((list) => {
      const counts = new Set<number>();
      new MutationObserver(() => {
        const rows = [...list.querySelectorAll("article")];
        counts.add(rows.filter((row) => row.textContent.includes("Once upon a time")).length);
      }).observe(list, { childList: true, subtree: true, characterData: true });
      return counts;
    });
    request.finish("there was a loom.");
    await page.getByText("Once upon a time there was a loom.").first().waitFor();
    await ended(runId);
    await expect.poll(() => page.locator("[data-live]").count()).toBe(0);
    await expect.poll(() => shownEntries(page)).toEqual(await storedIds());
    // Never missing and never twice.
    expect(await watching.evaluate((counts) => [...counts])).toEqual([1]);
  });

  test("shows a growing answer in a hidden page, which has no animation frames", async () => {
    const page = await open();
    await page.addInitScript(() => {
      Object.defineProperty(document, "hidden", { get: () => true });
      globalThis.requestAnimationFrame = () => 0;
    });
    await page.reload();
    const { request, runId } = await ask("go on in the background");
    request.stream("The first half, ");
    await page.locator("[data-live]").getByText("The first half,").waitFor();
    request.stream("the second half");
    await page.locator("[data-live]").getByText("The first half, the second half").waitFor();
    request.finish(".");
    await ended(runId);
    await expect.poll(() => page.locator("[data-live]").count()).toBe(0);
  });

  test("reads an answer again when a piece of it was lost", async () => {
    const page = await open();
    let lost = 0;
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((text) => {
        const isLost = /"event":"run.delta".*"delta":"[^"]*the middle/.test(String(text));
        if (isLost) lost += 1;
        else socket.send(text);
      });
    });
    await page.reload();
    const { request } = await ask("tell me a story");
    request.stream("The beginning, ");
    const live = page.locator("[data-live]");
    await live.getByText("The beginning,").waitFor();
    request.stream("the middle, ");
    await expect.poll(() => lost).toBe(1);
    request.stream("the next part");
    await live.getByText("The beginning, the middle, the next part").waitFor();
    request.finish(".");
  });

  test("drops the text of a request that broke off when the model is asked again", async () => {
    const { runId, request } = await ask("tell me");
    request.stream("Half of an answer");
    const page = await open();
    const live = page.locator("[data-live]");
    await live.getByText("Half of an answer").waitFor();
    request.breakOff();
    const again = await nextRequest();
    again.stream("From the beginning");
    await live.getByText("From the beginning").waitFor();
    expect(await transcript(page).innerText()).not.toContain("Half of an answer");
    again.finish(" to the end.");
    await ended(runId);
    await expect.poll(() => shownEntries(page)).toEqual(await storedIds());
    expect(await transcript(page).innerText()).not.toContain("Half of an answer");
  });

  test("shows each answer of a turn with tools once, also a second one that is shorter", async () => {
    const { runId, request } = await ask("look around");
    request.stream("First, I look at the sessions. ");
    const page = await open();
    await page.getByText("First, I look at the sessions.").first().waitFor();
    request.callTool("sessions_list", {});
    const second = await nextRequest();
    second.stream("Few.");
    await page.locator("[data-live]").getByText("Few.", { exact: true }).first().waitFor();
    expect(await page.getByText("First, I look at the sessions.").count()).toBe(1);
    second.finish(" That is all.");
    await ended(runId);
    await page.getByText("Few. That is all.").first().waitFor();
    await expect.poll(() => shownEntries(page)).toEqual(await storedIds());
  });

  test("says that the gateway is gone, and shows the stored entries when it is back, also after the background", async () => {
    const { request, runId } = await ask("first");
    request.finish("The first answer.");
    await ended(runId);
    const page = await open();
    await page.getByText("The first answer.").first().waitFor();
    await whileKilled(async () => {
      await page.getByText(offline).first().waitFor();
      // Amber is for what needs a person.
      const colors = await page.getByText(offline).evaluate((bar) => {
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.color = "var(--amber)";
        probe.style.background = "var(--amber-wash)";
        const found = [bar, probe].map((each) => {
          const { color, backgroundColor } = getComputedStyle(each);
          return [color, backgroundColor];
        });
        probe.remove();
        return found;
      });
      expect(colors[0]?.filter((color) => colors[1]?.includes(color))).toEqual([]);
    });
    await page.getByText(offline).first().waitFor({ state: "detached" });
    const second = await ask("second");
    second.request.finish("The second answer.");
    await page.getByText("The second answer.").first().waitFor();
    await ended(second.runId);
    await expect.poll(() => shownEntries(page)).toEqual(await storedIds());

    // Timers stop in the background, so the client does not retry on its own. It does when the tab is shown, when the
    // page comes back from the browser's history, and when the computer is online again.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    for (const name of ["visibilitychange", "pageshow", "online"]) {
      await whileKilled(() => page.getByText(offline).first().waitFor());
      await page.evaluate(
        (event) => (event === "visibilitychange" ? document : window).dispatchEvent(new Event(event)),
        name,
      );
      await page.getByText(offline).first().waitFor({ state: "detached" });
    }
    await page.clock.resume();
    const third = await ask("third");
    third.request.finish("The third answer.");
    await page.getByText("The third answer.").first().waitFor();
  });

  test("keeps a draft for each session across a reload, until it is sent", async () => {
    const other = "agent:main:other";
    for (const each of [key, other]) await gateway.call("sessions.create", { key: each });
    const page = await open();
    const message = page.getByLabel("Message", { exact: true });
    await message.fill("a draft");
    await page.goto(`${gateway.url}/#${sessionRoute(other)}`);
    await page.getByRole("heading", { name: "Session main:other" }).waitFor();
    await message.fill("another draft");
    await page.reload();
    await expect.poll(() => message.inputValue()).toBe("another draft");
    await page.goto(`${gateway.url}/#${sessionRoute(key)}`);
    await expect.poll(() => message.inputValue()).toBe("a draft");
    await message.press("Enter");
    (await nextRequest()).finish("Received.");
    await expect.poll(() => message.inputValue()).toBe("");
    await page.reload();
    await transcript(page).getByText("Received.").waitFor();
    expect(await message.inputValue()).toBe("");
  });

  test("keeps small attachments and the change of a queued message across a reload, and names what it lost", async () => {
    const { request } = await ask("work");
    const page = await open();
    const message = page.getByLabel("Message", { exact: true });
    await message.fill("wait");
    await message.press("Alt+Enter");
    await page.getByLabel("Edit the queued message").click();
    await page.getByLabel("Queued message", { exact: true }).fill("wait for me");
    const attach = (name: string, length: number) =>
      page
        .locator("input[type=file]")
        .setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.alloc(length, "x") });
    const attached = page.getByRole("list", { name: "Attachments" }).getByRole("listitem");
    await attach("small.txt", 100);
    await attach("huge.txt", 3_000_000);
    await expect.poll(() => attached.count()).toBe(2);
    await message.fill("with a file");
    await page.reload();
    await page.getByRole("alert").filter({ hasText: "huge.txt" }).waitFor();
    await expect.poll(() => attached.allInnerTexts()).toEqual(["small.txt"]);
    const queued = page.getByLabel("Queued message", { exact: true });
    await expect.poll(() => queued.inputValue()).toBe("wait for me");
    await expect.poll(() => message.inputValue()).toBe("with a file");
    await page.getByRole("button", { name: "Dismiss" }).click();
    await page.reload();
    await attached.waitFor();
    await expect.poll(() => page.getByRole("alert").count()).toBe(0);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("wait for me").first().waitFor();
    await message.press("Enter");
    await attached.waitFor({ state: "detached" });
    request.finish("Done.");
    // One turn for each message, in any order.
    const texts: string[] = [];
    for (let turns = 0; turns < 2; turns += 1) {
      const next = await nextRequest();
      texts.push(next.lastUserText);
      next.finish("Done.");
    }
    expect(texts.toSorted()).toEqual(["wait for me", expect.stringContaining("small.txt")]);
  });

  test("shows the text that was streamed before the gateway was killed, next to the new answer", async () => {
    const page = await open();
    const { request } = await ask("tell me");
    request.stream("Half of an **answer**");
    await page.locator("[data-live]").getByText("Half of an answer").waitFor();
    // The gateway stores the streamed text about once a second, when more of it arrives.
    const storeMore = () => {
      request.stream(".");
      return storedTexts();
    };
    await expect.poll(storeMore).toHaveLength(1);
    await whileKilled(async () => undefined);
    (await nextRequest()).finish("The whole answer.");
    await page.getByText("The whole answer.").first().waitFor();
    const lost = page.locator("summary", { hasText: "Interrupted answer: Half of an answer" });
    await lost.click();
    await transcript(page).locator("strong", { hasText: "answer" }).waitFor();
  });

  test("offline says that a message is not sent, sends it once later, and loads a page again without losing drafts", async () => {
    await gateway.call("sessions.create", { key });
    const page = await open();
    const message = page.getByLabel("Message", { exact: true });
    const unsent = page.getByText("Not sent yet: the gateway is offline.");
    await message.fill("not after all");
    await whileKilled(async () => {
      await page.getByText(offline).first().waitFor();
      await message.press("Enter");
      await unsent.waitFor();
      await page.getByRole("button", { name: "Do not send" }).click();
      await unsent.waitFor({ state: "detached" });
      await expect.poll(() => message.inputValue()).toBe("not after all");
      await message.fill("sent once");
      await message.press("Enter");
      await unsent.waitFor();

      await page.getByRole("link", { name: "Usage" }).click();
      await page.getByText("could not be loaded from the gateway").first().waitFor();
      expect(browser.problems.splice(0).join()).toContain("could not be loaded");
    });
    await page.getByText(offline).first().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Unpriced").first().waitFor();
    (await nextRequest()).finish("Received.");
    await page.goBack();
    await transcript(page).getByText("Received.").waitFor();
    await expect.poll(() => message.inputValue()).toBe("");
    const { runs } = await gateway.call("runs.list", { sessionKey: key });
    expect(runs.map(({ preview }) => preview)).toEqual(["sent once"]);
  });

  test("queues, edits, cancels and stops", async () => {
    const { runId, request } = await ask("work");
    request.stream("The work goes on");
    const page = await open();
    const message = page.getByLabel("Message", { exact: true });
    const queued = page.getByRole("list", { name: "Queued messages" });
    await page.getByText("The work goes on").first().waitFor();
    for (const text of ["edit me", "cancel me"]) {
      await message.fill(text);
      await message.press("Alt+Enter");
      await queued.getByText(text).first().waitFor();
    }
    await queued
      .getByRole("listitem")
      .filter({ hasText: "edit me" })
      .getByLabel("Edit the queued message")
      .click();
    await page.getByLabel("Queued message", { exact: true }).fill("edited");
    await page.getByLabel("Queued message", { exact: true }).press("Enter");
    await queued.getByText("edited").first().waitFor();
    await queued
      .getByRole("listitem")
      .filter({ hasText: "cancel me" })
      .getByLabel("Cancel the queued message")
      .click();
    await queued.getByText("cancel me").waitFor({ state: "detached" });
    // The page has only the beginning of this message.
    await message.fill(`long ${"x".repeat(13_000)}`);
    await message.press("Alt+Enter");
    const long = queued.getByRole("listitem").filter({ hasText: "long xxx" });
    await long.getByText("cannot be edited here").waitFor();
    expect(await long.getByLabel("Edit the queued message").count()).toBe(0);
    await long.getByLabel("Cancel the queued message").click();
    await long.waitFor({ state: "detached" });
    request.finish(" is done.");
    await ended(runId);
    const next = await nextRequest();
    expect(next.lastUserText).toBe("edited");
    next.stream("On it");
    await page.getByText("On it").first().waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => page.locator("[data-live]").count()).toBe(0);
    const stopped = page.locator("[data-entry-id]").filter({ hasText: "On it" });
    await stopped.getByText("stopped", { exact: true }).waitFor();
    const states = async () => {
      const { runs } = await gateway.call("runs.list", { sessionKey: key });
      return runs.map(({ state, preview }) => `${preview.slice(0, 9)}: ${state}`).sort();
    };
    await expect
      .poll(states)
      .toEqual(["cancel me: aborted", "edited: aborted", "long xxxx: aborted", "work: ok"]);
    expect(JSON.stringify(next.messages)).not.toContain("cancel me");
  });

  test("steers the running turn with Enter: the next request of the same run contains the message", async () => {
    const { runId, request } = await ask("look around");
    request.stream("I look at the sessions");
    const page = await open();
    const message = page.getByLabel("Message", { exact: true });
    await page.getByRole("button", { name: /^Steer/ }).waitFor();
    await message.fill("only the newest one");
    await message.press("Enter");
    await expect.poll(() => message.inputValue()).toBe("");
    request.callTool("sessions_list", {});
    const next = await nextRequest();
    expect(next.lastUserText).toContain("only the newest one");
    next.finish("The newest one.");
    await ended(runId);
    await transcript(page).getByText("The newest one.", { exact: true }).waitFor();
    await expect.poll(() => shownEntries(page)).toEqual(await storedIds());
    // Both messages have one answer, so there was no second turn.
    expect(model.count).toBe(asked);
  });

  test("shows a line of a megabyte in a message and in an answer, whole on request", async () => {
    const line = `${"word ".repeat(110_000)}needle ${"word ".repeat(110_000)}end`;
    const content = sessionText(userLine("message", null, line), {
      ...userLine("answer", "message"),
      message: assistantMessage(line),
    });
    await gateway.call("sessions.import", { key, files: [{ name: "line.jsonl", content }] });
    for (const entry of ["message", "answer"]) {
      const page = await open({ entry });
      const row = page.locator(`[data-entry-id="${entry}"]`);
      const more = row.getByRole("button", { name: /^Show the whole text|Show more$/ }).first();
      await more.waitFor();
      expect((await row.textContent())?.length).toBeLessThan(300_000);
      await expect
        .poll(async () => {
          if (await more.isVisible()) await more.evaluate((button) => (button as HTMLButtonElement).click());
          return (await row.textContent())?.length;
        })
        .toBeGreaterThan(line.length);
      expect(await row.textContent()).toContain("word needle word");
    }
  });

  test("shows the day and the time of an entry of the last days", async () => {
    await fill(1, () => "A note");
    const page = await open();
    await page.clock.setFixedTime(Date.now() + 3 * 86_400_000);
    await page.reload();
    const time = page.locator("[data-entry-id]").first().locator("time");
    await expect.poll(() => time.textContent()).toMatch(/^[A-Z][a-z]{2} \d+, \d+:\d\d/);
  });

  test("shows both texts when two browsers change a queued message, and keeps a change that comes too late", async () => {
    const { request } = await ask("work");
    request.stream("Working");
    await gateway.call("chat.send", {
      sessionKey: key,
      message: "first text",
      idempotencyKey: `${key} queued`,
      queueMode: "followup",
    });
    const [ann, bob] = await Promise.all([open(), open()]);
    const field = (page: Page) => page.getByLabel("Queued message", { exact: true });
    for (const page of [ann, bob]) await page.getByLabel("Edit the queued message").click();
    await field(bob).fill("the text of bob");
    await field(ann).fill("the text of ann");
    await field(ann).press("Enter");
    const conflict = bob.getByRole("alert").filter({ hasText: "Someone else has changed this message." });
    await conflict.getByText("the text of ann").waitFor();
    expect(await field(bob).inputValue()).toBe("the text of bob");
    await conflict.getByRole("button", { name: "Save mine instead" }).click();
    const queued = ann.getByRole("list", { name: "Queued messages" });
    await queued.getByText("the text of bob").waitFor();

    // The run starts while ann types.
    await ann.getByLabel("Message", { exact: true }).fill("a draft");
    await ann.getByLabel("Edit the queued message").click();
    await field(ann).fill("too late");
    request.finish(" done.");
    const next = await nextRequest();
    expect(next.lastUserText).toBe("the text of bob");
    await ann.getByText("Your text is in the composer.").waitFor();
    await expect
      .poll(() => ann.getByLabel("Message", { exact: true }).inputValue())
      .toBe("a draft\n\ntoo late");
    next.finish("Done.");
    await transcript(ann).getByText("Done.", { exact: true }).waitFor();
  });
});
