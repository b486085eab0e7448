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

const hostile = `<script>alert(1)</script>

<img src="https://elsewhere.example/a.png" onerror="alert(2)"><style>* { display: none }</style>

![beacon](https://elsewhere.example/b.png) [a link](javascript:alert(3)) [by reference][evil] [the docs][docs]

[https://bank.example](https://elsewhere.example/login)

\u001b[31mred\u001b[0m \u202etxt.exe zero\u200bwidth

- [x] <iframe src="https://elsewhere.example/"></iframe>

[evil]: javascript:alert(4)
[docs]: https://elsewhere.example/docs`;

const user = (content: string, provenance?: { kind: string } & Record<string, string>) => ({
  role: "user" as const,
  content,
  ...(provenance === undefined ? {} : { provenance }),
});
const answer = (text: string) => ({ role: "assistant" as const, content: [{ type: "text" as const, text }] });

/** A tool call with its result. */
const result = (value: string, input: Readonly<Record<string, string>> = {}, toolName = "run") => {
  const call = { toolCallId: "call_1", toolName };
  return [
    user("run it"),
    { role: "assistant" as const, content: [{ type: "tool-call" as const, ...call, input }] },
    {
      role: "tool" as const,
      content: [{ type: "tool-result" as const, ...call, output: { type: "text" as const, value } }],
    },
    answer("That was all."),
  ];
};

/** A result so long that the entry omits its middle. */
const longResult = Array.from({ length: 1000 }, (_, line) =>
  line === 500 ? "the needle in the middle" : `line ${line} of the result `.repeat(24),
).join("\n");

/** Results of session tools. The session key and the name are the only parts of them that lead anywhere. */
const sessionResults: readonly (readonly [string, object])[] = [
  [
    "sessions_spawn",
    { status: "ok", runId: "r1", childSessionKey: "subagent:0a", label: "scout", mode: "run" },
  ],
  [
    "sessions_send",
    {
      status: "ok",
      runId: "r2",
      sessionKey: "agent:main:session:marked",
      reply: "**Yes**, [look](https://evil.example)",
    },
  ],
  ["sessions_yield", { status: "yielded", message: "Turn yielded.", waitingFor: ["r1", "r2"] }],
  ["sessions_list", { count: 1, sessions: [{ key: "agent:main:main" }] }],
  ["sessions_spawn", { status: "forbidden", code: "depth", error: "Helpers may not spawn helpers" }],
];

/** A block of code with this many characters. */
const codeOf = (length: number) => {
  const line = `const word = "${"x".repeat(985)}";\n`;
  return `\`\`\`ts\n${line.repeat(Math.ceil(length / line.length))}\`\`\``;
};

const greeting = [user("hello"), answer("Hi.")];
const sessions = {
  composer: greeting,
  composing: greeting,
  note: [{ role: "system" as const, content: longResult }, ...greeting],
  hostile: [
    user(hostile),
    answer(hostile),
    ...result(`\u001b]0;title\u0007 ${"x".repeat(1_000_000)}`),
    user("> ".repeat(20_000)),
    answer("_a".repeat(20_000)),
    answer("The last row."),
  ],
  heavy: [
    user("go on"),
    answer(`${`${"a.".repeat(300)}@\n\n`.repeat(160)}the end of the addresses`),
    answer(Array.from({ length: 3000 }, (_, at) => `- [ ] task${at}`).join("\n")),
    answer("The last row."),
  ],
  wide: [
    user("go on"),
    answer(
      `${"|a".repeat(100)}|\n${"|-".repeat(100)}|\n${`${"|b".repeat(100)}|\n`.repeat(600)}\nthe end of the table`,
    ),
    answer(`a${"\u0301".repeat(200_000)}`),
    answer("The last row."),
  ],
  marked: [user("# Plan\n\n**Weave** the `warp`"), answer("It is in [the plan](https://a.example).")],
  toolResults: sessionResults.flatMap(([tool, value]) => result(JSON.stringify(value), {}, tool)),
  strangeResults: [
    ...result(
      '{"childSessionKey":"subagent:1","outcome":{"toString":null,"valueOf":null}}',
      {},
      "sessions_spawn",
    ),
    ...result('{"childSessionKey":"subagent:2","outcome":"__proto__"}', {}, "sessions_spawn"),
    ...result('{"sessionKey":"agent:main:\\ud800","status":"constructor"}', {}, "sessions_send"),
    user("from nowhere", { kind: "inter_session", sourceSessionKey: "agent:main:\ud800" }),
    answer("Still here."),
  ],
  code: [user("show code"), answer(codeOf(60_000)), answer(codeOf(101_000))],
  lines: result(Array.from({ length: 1000 }, (_, line) => `line ${line}`).join("\n")),
  longCall: result("It ran.", { script: `first${"y".repeat(900_000)}last` }),
  senders: [
    user("from the person"),
    user("from a group", { kind: "external_user", sourcePeer: "u7", sourcePeerName: "Grace" }),
    user("from a session", { kind: "inter_session", sourceSessionKey: "agent:main:session:hostile" }),
    user("from a schedule", { kind: "internal_system", sourceTool: "cron" }),
    answer("All received."),
  ],
  long: [
    ...result(longResult),
    ...Array.from({ length: 80 }, (_, index) => answer(`Remark ${index}\n\nwith a second paragraph`)),
  ],
};

beforeAll(async () => {
  const skein = await openSkein({ dir: `${home.path}/root`, cwd: home.path, quiet: true });
  for (const [sessionId, messages] of Object.entries(sessions))
    await skein.session({ agentId: "main", sessionId }).append(messages);
  await skein.close();
  model = await startModel();
  const config = `${model.config}agents: { main: { tools: { ask: [session_search] } } }\n`;
  gateway = await startGateway({ config });
});

const keyOf = (name: string) => `agent:main:session:${name}`;
const open = (name: string, options: PageOptions = {}) =>
  browser.open(gateway, sessionRoute(keyOf(name)), options);
const transcript = (page: Page) => page.getByRole("region", { name: "Transcript", exact: true });
const rowWith = (page: Page, text: string) =>
  transcript(page).locator("[data-entry-id]").filter({ hasText: text });
const composer = (page: Page) => page.getByLabel("Message", { exact: true });
const attachments = (page: Page) => page.getByRole("list", { name: "Attachments" }).getByRole("listitem");

describe.skipIf(browser === null)("a transcript in the console", () => {
  test("shows hostile texts as text, without a dialog or a request to another server", async () => {
    const page = await browser.open(gateway, "/search");
    const elsewhere: string[] = [];
    page.on("request", (request) => {
      if (!/^(?:data|blob):/.test(request.url()) && !request.url().startsWith(gateway.url))
        elsewhere.push(request.url());
    });
    page.on("dialog", (dialog) => {
      elsewhere.push(dialog.message());
      void dialog.dismiss();
    });
    await page.goto(`${gateway.url}/#${sessionRoute(keyOf("hostile"))}`);
    await rowWith(page, "The last row.").waitFor();
    await page.getByText(/^Result: /).click();
    await page.getByRole("button", { name: /characters hidden/ }).waitFor();
    expect((await transcript(page).innerText()).length).toBeLessThan(300_000);

    await transcript(page).evaluate((list) => list.scrollTo(0, 0));
    const row = transcript(page)
      .getByRole("article", { name: /^main,/ })
      .first();
    await row.getByText("red").waitFor();
    const shown = await row.innerText();
    for (const text of [
      "<script>alert(1)</script>",
      '<img src="https://elsewhere.example/a.png"',
      "<style>* { display: none }</style>",
      "␛[31mred␛[0m ⟨U+202E⟩txt.exe zero⟨U+200B⟩width",
      '<iframe src="https://elsewhere.example/">',
      "a link by reference the docs",
      "https://bank.example (elsewhere.example)",
    ])
      expect(shown).toContain(text);
    expect(await transcript(page).locator("script, style, iframe, img").count()).toBe(0);
    const links = await row
      .locator("a[target]")
      .evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    expect(links).toEqual([
      "https://elsewhere.example/b.png",
      "https://elsewhere.example/docs",
      "https://elsewhere.example/login",
    ]);
    expect(await row.getByRole("checkbox", { name: "done" }).count()).toBe(1);
    expect(elsewhere).toEqual([]);
  });

  test("shows the ends of a long list, and the rest of it in steps", async () => {
    const page = await open("heavy");
    await rowWith(page, "The last row.").waitFor();
    const tasks = page.getByRole("checkbox", { name: "to do" });
    await page.getByText("task2999", { exact: true }).waitFor();
    expect(await tasks.count()).toBeLessThan(1500);
    const more = page.getByRole("button", { name: /lines hidden. Show more$/ });
    // Each step shows four times as much.
    for (let step = 0; step < 3 && (await more.count()) > 0; step += 1)
      await more.evaluate((button) => (button as HTMLButtonElement).click());
    await expect.poll(() => tasks.count()).toBe(3000);
    await transcript(page).evaluate((list) => list.scrollTo(0, 0));
    await page.getByText("the end of the addresses").waitFor();
  });

  test("mounts some rows of a table with very many cells, and some accents of a letter", async () => {
    const page = await open("wide");
    await rowWith(page, "The last row.").waitFor();
    await rowWith(page, "more marks⟩").first().waitFor();
    expect((await rowWith(page, "more marks⟩").first().innerText()).length).toBeLessThan(1000);
    const row = rowWith(page, "the end of the table");
    await row.getByRole("button", { name: /hidden. Show more$/ }).waitFor();
    const cells = () => row.locator("th, td").count();
    const first = await cells();
    expect(first).toBeGreaterThan(500);
    expect(first).toBeLessThan(4000);
    await row
      .getByRole("button", { name: /hidden. Show more$/ })
      .evaluate((button) => (button as HTMLButtonElement).click());
    await expect.poll(cells).toBeGreaterThan(first + 500);
  });

  test("has previews without the marks of Markdown in the tree and in search", async () => {
    const page = await browser.open(gateway, sessionRoute(keyOf("marked"), "tree"));
    const rows = page.getByRole("treeitem");
    await rows.filter({ hasText: "Plan Weave the warp" }).waitFor();
    await rows.filter({ hasText: "It is in the plan." }).waitFor();
    await page.goto(`${gateway.url}/#/search?q=weave`);
    const hit = page.getByRole("list", { name: "Results" }).getByRole("listitem").first();
    await hit.getByText("Plan Weave the warp").waitFor();
    expect(await hit.locator("mark").allInnerTexts()).toEqual(["Weave"]);
  });

  test("mounts the arguments of a call when they are opened, and of long ones the ends", async () => {
    const page = await open("longCall");
    await rowWith(page, "That was all.").waitFor();
    const size = () => transcript(page).evaluate((list) => list.textContent?.length ?? 0);
    expect(await size()).toBeLessThan(5000);
    await page.locator("summary", { hasText: "firstyyy" }).click();
    await page.getByRole("button", { name: /characters hidden/ }).waitFor();
    await transcript(page).getByText('ylast"').waitFor();
    expect(await size()).toBeLessThan(60_000);
  });

  test("says in one line what a session tool did, with a link made from the session's key", async () => {
    const page = await open("toolResults");
    await rowWith(page, "That was all.").last().waitFor();
    const lines = transcript(page).locator('[data-kind="tool"] p');
    await expect
      .poll(() => lines.allInnerTexts())
      .toEqual([
        "Started scout",
        "Sent to main:session:marked · Yes, look",
        "Waiting for 2 runs",
        "Found 1 session",
        "Helpers may not spawn helpers",
      ]);
    expect(await transcript(page).getByText("childSessionKey").count()).toBe(0);
    const links = lines.locator("a");
    expect(await links.evaluateAll((all) => all.map((link) => link.getAttribute("href")))).toEqual([
      `#${sessionRoute("subagent:0a")}`,
      `#${sessionRoute(keyOf("marked"))}`,
    ]);
    await rowWith(page, "Started scout").getByText("JSON", { exact: true }).click();
    await transcript(page).getByText("childSessionKey").waitFor();
    await links.last().click();
    await rowWith(page, "It is in the plan.").waitFor();
  });

  test("shows results of session tools and senders that no session tool writes", async () => {
    const page = await open("strangeResults");
    await rowWith(page, "Still here.").waitFor();
    await rowWith(page, "from nowhere").waitFor();
    const lines = transcript(page).locator('[data-kind="tool"] p');
    await expect.poll(() => lines.allInnerTexts()).toHaveLength(3);
    for (const line of await lines.allInnerTexts()) expect(line).not.toMatch(/object|function/);
  });

  test("says who wrote a message", async () => {
    const page = await open("senders");
    const senderOf = (text: string) => rowWith(page, text).getAttribute("aria-label");
    await rowWith(page, "All received.").waitFor();
    expect(await senderOf("from the person")).toMatch(/^You,/);
    expect(await senderOf("from a group")).toMatch(/^Grace,/);
    expect(await senderOf("from a schedule")).toMatch(/^Schedule,/);
    await rowWith(page, "from a session").getByRole("link", { name: "hostile" }).click();
    await rowWith(page, "The last row.").waitFor();
  });

  test("shows the other rows of a session with an entry that the console cannot read, and that entry as JSON", async () => {
    const page = await browser.open(gateway, "/search");
    await page.routeWebSocket(/./, (socket) => {
      socket.connectToServer().onMessage((text) => {
        const message = JSON.parse(String(text));
        for (const entry of message.payload?.entries ?? [])
          if (/from a group|All received/.test(JSON.stringify(entry.message))) entry.message.content = [null];
        socket.send(JSON.stringify(message));
      });
    });
    await page.goto(`${gateway.url}/#${sessionRoute(keyOf("senders"))}`);
    await page.reload();
    await rowWith(page, "from the person").waitFor();
    await rowWith(page, "from a schedule").waitFor();
    const broken = rowWith(page, "This entry could not be shown.");
    await expect.poll(() => broken.count()).toBe(2);
    await broken.first().getByText("JSON", { exact: true }).click();
    await broken.first().getByText('"sourcePeerName": "Grace"').waitFor();
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByLabel("Find in session").fill("from a sch");
    await page.getByText("1 of 1").waitFor();
    await composer(page).waitFor();
    // React logs what the rows threw.
    for (const problem of browser.problems.splice(0)) expect(problem).toMatch(/^TypeError: .* null/);
  });

  test("shows entries and content of unknown kinds as folded JSON", async () => {
    const page = await browser.open(gateway, "/search");
    const hologram = { type: "hologram", beam: 7 };
    const changes: readonly (readonly [string, (entry: { message: object }) => object])[] = [
      ["from the person", ({ message }) => ({ message: { ...message, content: [hologram] } })],
      ["from a group", () => ({ type: "custom", customType: "acme.poll", data: { votes: 12 } })],
      ["from a session", () => ({ type: "telepathy", strength: 9 })],
      ["from a schedule", () => ({ message: { role: "oracle", saying: { wind: 3 } } })],
    ];
    await page.routeWebSocket(/./, (socket) => {
      socket.connectToServer().onMessage((text) => {
        const message = JSON.parse(String(text));
        for (const entry of message.payload?.entries ?? []) {
          const [, change] = changes.find(([words]) => JSON.stringify(entry).includes(words)) ?? [];
          if (change !== undefined) Object.assign(entry, change(entry));
        }
        socket.send(JSON.stringify(message));
      });
    });
    await page.goto(`${gateway.url}/#${sessionRoute(keyOf("senders"))}`);
    await page.reload();
    for (const [title, json] of [
      ["Content of an unknown kind", '"beam": 7'],
      ["Custom entry: acme.poll", '"votes": 12'],
      ["telepathy", '"strength": 9'],
      ["Content of an unknown kind", '"wind": 3'],
    ] as const) {
      await transcript(page).locator("details:not([open]) summary", { hasText: title }).first().click();
      await transcript(page).getByText(json).waitFor();
    }
  });

  test("reads the rest of a large result when it is opened, and keeps it open in rows that leave the screen", async () => {
    const page = await open("long");
    const list = transcript(page);
    await rowWith(page, "Remark 79").waitFor();
    const scrollTo = (top: number) => list.evaluate((element, to) => element.scrollTo(0, to), top);
    await scrollTo(0);
    await page.getByText(/^Result: line 0/).click();
    await page.getByRole("button", { name: /^Show the whole text/ }).click();
    const more = page.getByRole("button", { name: /lines hidden. Show more$/ });
    await more.click();
    await more.click();
    const needle = page.getByText("the needle in the middle");
    await needle.waitFor();
    await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await rowWith(page, "Remark 79").waitFor();
    await expect.poll(() => page.getByText("run it").count()).toBe(0);
    await scrollTo(0);
    await needle.waitFor();

    await page.goto(`${gateway.url}/#${sessionRoute(keyOf("note"))}`);
    await rowWith(page, "Hi.").waitFor();
    await scrollTo(0);
    await page.getByRole("button", { name: /^Show the whole text/ }).click();
    await more.click();
    await more.click();
    await needle.waitFor();
    await page.goto(`${gateway.url}/#${sessionRoute(keyOf("long"), "context")}`);
    await page
      .getByRole("list", { name: "The request" })
      .getByText(/line 0 of the result/)
      .click();
    await more.waitFor();
  });

  test("highlights a closed block of up to 100 KB", async () => {
    const page = await open("code");
    const blocks = transcript(page).locator("figure");
    await expect.poll(() => blocks.count()).toBe(2);
    const colored = (index: number) => blocks.nth(index).locator("code span").count();
    // While a part is hidden, the rest has one color.
    expect([await colored(0), await colored(1)]).toEqual([0, 0]);
    for (const block of await blocks.all()) {
      await block.getByRole("button", { name: /hidden\. Show more/ }).click();
      await block.getByRole("button", { name: /hidden/ }).waitFor({ state: "detached" });
    }
    await expect.poll(() => colored(0)).toBeGreaterThan(100);
    expect(await colored(1)).toBe(0);

    const before = model.count;
    await composer(page).fill("write some");
    await page.keyboard.press("Enter");
    const request = await model.request(before);
    request.stream("```ts\nconst open = 1;\n");
    const last = transcript(page).locator("figure", { hasText: "const open" });
    await last.waitFor();
    expect(await last.locator("code span").count()).toBe(0);
    request.finish("```\n");
    await last.locator("code span", { hasText: "const" }).first().waitFor();
  });

  test("mounts the first 200 and the last 300 lines of a result", async () => {
    const page = await open("lines");
    await rowWith(page, "session_search").or(transcript(page).locator("[data-kind=tool]")).first().waitFor();
    await transcript(page).locator("[data-kind=tool] summary").last().click();
    const parts = transcript(page).locator("[data-kind=tool] pre code");
    await transcript(page)
      .getByRole("button", { name: /500 lines hidden/ })
      .waitFor();
    const [head = "", tail = ""] = (await parts.allInnerTexts()).slice(-2);
    const lines = (text: string) => text.trim().split("\n");
    expect([lines(head).length, lines(head).at(-1)]).toEqual([200, "line 199"]);
    expect([lines(tail).length, lines(tail)[0], lines(tail).at(-1)]).toEqual([300, "line 700", "line 999"]);
  });

  test("tells roles apart by shape, not only by color", async () => {
    const shapes = new Map<string, string>();
    for (const name of ["senders", "lines", "note"]) {
      const page = await open(name);
      await transcript(page).locator("[data-kind=agent]").first().waitFor();
      for (const row of await transcript(page).locator("[data-entry-id]").all()) {
        const [kind, shape] = await row.evaluate((element) => {
          const body = element.querySelector("[class*=body]") ?? element;
          const { paddingLeft, backgroundImage } = getComputedStyle(element);
          const {
            borderLeftStyle,
            borderLeftWidth,
            backgroundImage: inner,
            fontFamily,
          } = getComputedStyle(body);
          const isHatched = [backgroundImage, inner].some((image) => image.includes("gradient"));
          const border = `${borderLeftStyle} ${borderLeftWidth}`;
          return [
            element.getAttribute("data-kind") ?? "",
            JSON.stringify([paddingLeft, border, isHatched, fontFamily.includes("mono")]),
          ] as const;
        });
        shapes.set(kind, shape);
      }
    }
    for (const kind of ["user", "agent", "tool", "session", "system"])
      expect([kind, [...shapes.keys()].includes(kind)]).toEqual([kind, true]);
    const main = ["user", "agent", "tool", "session", "system"].map((kind) => shapes.get(kind));
    expect(new Set(main).size).toBe(main.length);
  });

  test("copies a block where the page has no clipboard", async () => {
    const page = await open("long");
    await rowWith(page, "Remark 79").waitFor();
    await transcript(page).evaluate((list) => {
      Object.defineProperty(navigator, "clipboard", { value: undefined });
      list.scrollTo(0, 0);
    });
    await page.getByText("run {}").click();
    await page.getByRole("button", { name: "Copy", exact: true }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await composer(page).focus();
    await page.keyboard.press("ControlOrMeta+v");
    await expect.poll(() => composer(page).inputValue()).toBe("{}");
  });
});

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
    expect(await live.getByText("session_search").count()).toBe(0);
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
    expect(await queued.getByRole("button").evaluateAll((all) => all.map((each) => each.ariaLabel))).toEqual([
      "Cancel the queued message",
    ]);
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
