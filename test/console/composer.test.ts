import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { openSkein } from "../../src/app.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import type { HeldModel } from "../support/held-model.ts";
import type { PageOptions } from "./console-browser.ts";
import { sessionRoute } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser, home, startGateway, startModel } = await useConsole();
let model: HeldModel;
let gateway: GatewayProcess;

beforeAll(async () => {
  const skein = await openSkein({ dir: `${home.path}/root`, cwd: home.path, quiet: true });
  for (const sessionId of ["composer", "composing"])
    await skein.session({ agentId: "main", sessionId }).append([
      { role: "user", content: "hello" },
      { role: "assistant", content: [{ type: "text", text: "Hi." }] },
    ]);
  await skein.close();
  model = await startModel();
  const config = `${model.config}agents: { main: { tools: { ask: [session_search] } } }\n`;
  gateway = await startGateway({ config });
});

const keyOf = (name: string) => `agent:main:session:${name}`;
const open = (name: string, options: PageOptions = {}) =>
  browser.open(gateway, sessionRoute(keyOf(name)), options);
const rowWith = (page: Page, text: string) =>
  page
    .getByRole("region", { name: "Transcript", exact: true })
    .locator("[data-entry-id]")
    .filter({ hasText: text });
const composer = (page: Page) => page.getByLabel("Message", { exact: true });
const attachments = (page: Page) => page.getByRole("list", { name: "Attachments" }).getByRole("listitem");

describe.skipIf(browser === null)("the composer of the console", () => {
  /** Adds files or text to the page, either pasted into the composer or dropped on the transcript. */
  async function give(page: Page, how: "paste" | "drop", what: { text?: string; image?: string }) {
    await composer(page).waitFor();
    await page.evaluate(
      async ({ type, text, image }) => {
        const data = new DataTransfer();
        if (text !== undefined) data.setData("text/plain", text);
        if (image !== undefined) {
          const canvas = new OffscreenCanvas(2400, 200);
          const noise = new ImageData(canvas.width, canvas.height);
          // Noise does not compress.
          for (let at = 0; at < noise.data.length; at += 1) noise.data[at] = Math.random() * 256;
          canvas.getContext("2d")?.putImageData(noise, 0, 0);
          data.items.add(new File([await canvas.convertToBlob()], image, { type: "image/png" }));
        }
        const area = document.querySelector("textarea[aria-label='Message']");
        const options = { bubbles: true, cancelable: true };
        if (type === "paste")
          area?.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, ...options }));
        else
          document
            .querySelector("main")
            ?.dispatchEvent(new DragEvent("drop", { dataTransfer: data, ...options }));
      },
      { type: how, ...what },
    );
  }

  test("attaches images and long texts by paste and drop, scales large images down, and keeps drafts", async () => {
    const page = await open("composer");
    await give(page, "paste", { text: "a,b\nc,d", image: "cells.png" });
    await attachments(page).filter({ hasText: "cells.png" }).waitFor();
    await give(page, "drop", { image: "photo.png" });
    await attachments(page).filter({ hasText: "photo.png" }).waitFor();
    await give(page, "paste", { text: "a long line\n".repeat(20_000) });
    await attachments(page).filter({ hasText: "pasted.txt" }).waitFor();
    await expect
      .poll(() =>
        attachments(page)
          .getByRole("presentation")
          .first()
          .evaluate((image) => (image as HTMLImageElement).naturalWidth),
      )
      .toBe(2000);
    await page.getByLabel("Remove photo.png").click();
    await composer(page).fill("look at this");

    await page.getByRole("link", { name: "Usage" }).click();
    await page.getByText("Unpriced").first().waitFor();
    await page.goBack();
    await expect.poll(() => composer(page).inputValue()).toBe("look at this");
    const before = model.count;
    await composer(page).press("Enter");
    const request = await model.request(before);
    expect(request.lastUserText).toContain("a long line\na long line");
    request.finish("Seen.");
    await rowWith(page, "Seen.").last().waitFor();
    await expect.poll(() => composer(page).inputValue()).toBe("");
    await expect.poll(() => attachments(page).count()).toBe(0);
    await page.getByText(/Attachment 1: webp/).click();
    await expect
      .poll(() =>
        page
          .getByRole("img", { name: "Attachment 1" })
          .evaluate((image) => (image as HTMLImageElement).naturalWidth),
      )
      .toBe(2000);
  });

  test("does not send while an input method composes", async () => {
    const page = await open("composing");
    await composer(page).focus();
    const input = await page.context().newCDPSession(page);
    await input.send("Input.imeSetComposition", { text: "かん", selectionStart: 2, selectionEnd: 2 });
    await page.keyboard.press("Enter");
    // Some browsers report the key that ends a composition only by this code.
    await composer(page).evaluate((area) =>
      area.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true })),
    );
    // The field keeps its size until the composition ends.
    const height = async () => (await composer(page).boundingBox())?.height ?? 0;
    const low = await height();
    const lines = { text: "か\nん\nじ", selectionStart: 5, selectionEnd: 5 };
    await input.send("Input.imeSetComposition", lines);
    await expect.poll(() => composer(page).inputValue()).toContain(lines.text);
    expect(await height()).toBe(low);
    await input.send("Input.insertText", { text: lines.text });
    await expect.poll(height).toBeGreaterThan(low);
    await composer(page).fill("");
    await input.send("Input.insertText", { text: "漢字" });
    const before = model.count;
    await page.keyboard.press("Enter");
    const request = await model.request(before);
    expect(request.lastUserText).toBe("漢字");
    request.finish("Read.");
    await rowWith(page, "Read.").last().waitFor();
    const { runs } = await gateway.call("runs.list", { sessionKey: keyOf("composing") });
    expect(new Set(runs.map(({ preview }) => preview))).toEqual(new Set(["漢字"]));
  });

  test("answers an approval on the page of its session, announces the answer, and offers nothing to a reader", async () => {
    const before = model.count;
    await gateway.call("chat.send", {
      sessionKey: keyOf("approval"),
      message: "search",
      idempotencyKey: `approval ${before}`,
    });
    const first = await model.request(before);
    const { token } = await gateway.call("tokens.create", { label: "reader", scopes: ["read"] });
    const [page, reader] = await Promise.all([open("approval"), open("approval", { token })]);
    const live = page.locator("[data-live][aria-busy=true]");
    await live.getByText("waiting for the model").waitFor();
    await composer(page).fill("later");
    await composer(page).press("Alt+Enter");
    first.callTool("session_search", { query: "rooms" });
    await live.getByText("waiting for your approval").waitFor();
    // The question shows the call, and so does its entry.
    await expect.poll(() => live.getByText("session_search").count()).toBe(0);
    await reader.getByText("waiting for your approval").waitFor();
    await reader.getByRole("list", { name: "Queued messages" }).getByText("later").waitFor();
    for (const name of [
      "Approve",
      "Deny…",
      "Send",
      "Steer",
      "Stop",
      "Cancel the queued message",
      "Edit the queued message",
    ])
      expect(await reader.getByRole("main").getByRole("button", { name }).count()).toBe(0);
    expect(await reader.getByRole("main").getByRole("textbox").count()).toBe(0);

    await page.getByRole("region", { name: "Needs you" }).getByRole("button", { name: "Approve" }).click();
    const second = await model.request(before + 1);
    second.stream("There are ");
    await live.getByText("There are").waitFor();
    const announced = page.getByRole("main").getByRole("status").filter({ hasText: "answered" });
    expect(await announced.count()).toBe(0);
    second.finish("three rooms.");
    await announced.getByText("main answered, 4 words").waitFor();
    await reader.getByRole("region", { name: "Needs you" }).waitFor({ state: "detached" });
    (await model.request(before + 2)).finish("Done.");
    await rowWith(page, "Done.").last().waitFor();
  });
});

describe.skipIf(browser === null)("the result of a helper in the console", () => {
  test("has the helper's name in the queue, in the transcript and in the tree, and cannot be edited", async () => {
    const before = model.count;
    const sessionKey = keyOf("parent");
    const { runId } = await gateway.call("chat.send", {
      sessionKey,
      message: "go",
      idempotencyKey: "parent",
    });
    (await model.request(before)).callTool("sessions_spawn", { task: "look around", label: "scout" });
    const requests = [await model.request(before + 1), await model.request(before + 2)];
    const helper = requests.find(({ lastUserText }) => lastUserText.includes("look around"));
    const parent = requests.find((request) => request !== helper);
    const page = await open("parent");
    await rowWith(page, "Started scout").getByRole("link", { name: "scout" }).waitFor();
    helper?.finish("Nothing **here**.");
    const queued = page.getByRole("list", { name: "Queued messages" }).getByRole("listitem");
    await queued.getByText("Result of scout: Nothing here.").waitFor();
    await expect
      .poll(() => queued.getByRole("button").evaluateAll((all) => all.map((each) => each.ariaLabel)))
      .toEqual(["Cancel the queued message"]);
    parent?.finish("It is on its way.");
    await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
    (await model.request(before + 3)).finish("The scout is back.");
    await rowWith(page, "The scout is back.").waitFor();
    const row = rowWith(page, "Nothing here.");
    await row.getByRole("link", { name: "scout" }).waitFor();
    expect(await row.innerText()).not.toContain("A session that you spawned");
    await page.goto(`${gateway.url}/#${sessionRoute(sessionKey, "tree")}`);
    await page.getByRole("treeitem").filter({ hasText: "scout: Nothing here." }).waitFor();
  });
});
