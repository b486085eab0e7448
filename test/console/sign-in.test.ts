import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { encodeQr } from "../../console/src/ui/qr-code.ts";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { PrefixProxy } from "../support/prefix-proxy.ts";
import { useConsole } from "./use-console.ts";

const { browser, startGateway } = await useConsole();
let gateway: GatewayProcess;

const basePath = "/tools/skein";
const config = `agents: { main: { model: rehearsal/basic } }
gateway: { basePath: ${basePath} }
`;

beforeAll(async () => {
  gateway = await startGateway({ config });
});

/** The link that `skein start` printed. */
const link = () => /^ +link +(\S+)$/m.exec(gateway.output)?.[1] ?? "";
/** Creates another link, with a token's permissions. */
async function newLink(token = gateway.token): Promise<string> {
  const { url } = await gateway.call("links.create", {}, token);
  return new URL(url, `${gateway.url}/`).href;
}
/** Holds the page's calls of a method until the result is called. */
async function holdCalls(page: Page, held: string): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.routeWebSocket(/./, (socket) => {
    const server = socket.connectToServer();
    socket.onMessage((text) => {
      const isHeld = JSON.parse(String(text)).method === held;
      void (isHeld ? promise : Promise.resolve()).then(() => server.send(text));
    });
  });
  return resolve;
}
const readyText = "No messages yet.";
const storedData = (page: Page) =>
  page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));

describe.skipIf(browser === null)("signing in to the console", () => {
  test("by the printed link works, and takes the code out of the address at once", async () => {
    const page = await browser.open(gateway, "/", { token: null, link: link() });
    await page.getByText(readyText).first().waitFor();
    expect(page.url()).not.toContain("code=");
    expect(await storedData(page)).not.toContain("skein_code");
    const listTokens = await holdCalls(page, "tokens.list");
    await page.reload();
    await page.getByText(readyText).first().waitFor();
    // Opens the same link again in a browser that already has a token.
    await page.goto(link());
    await page.getByText(readyText).first().waitFor();
    // A token created in this browser signs in another browser.
    await page.evaluate(() => location.assign("#/access?tab=tokens"));
    // Until the list arrives, it is unknown how long a new token can be valid.
    const create = page.getByRole("button", { name: "Create a token…" });
    await create.waitFor();
    expect(await create.isDisabled()).toBe(true);
    listTokens();
    await create.click();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const secret = await page.getByRole("dialog").locator("code").innerText();
    const other = await browser.open(gateway, "/", { token: null });
    await other.getByLabel("Or use a token:").fill(secret);
    await other.getByRole("button", { name: "Sign in" }).click();
    await other.getByText(readyText).first().waitFor();
  });

  test("by a used link without a token shows the command that prints a new one", async () => {
    const page = await browser.open(gateway, "/", { token: null, link: link() });
    await page.getByText("skein link").first().waitFor();
    expect(page.url()).not.toContain("code=");
  });

  test("behind a proxy that answers with its own page says so, and works where the browser refuses storage", async () => {
    const page = await browser.open(gateway, "/", { token: null });
    await page.getByText("skein link").first().waitFor();
    await page.route("**/link", (route) =>
      route.fulfill({ contentType: "text/html", body: "<h1>Log in</h1>" }),
    );
    await page.goto(await newLink());
    await page.getByText("The gateway is not responding.").first().waitFor();
    await page.unroute("**/link");
    await page.getByText(readyText).first().waitFor();
    await page.addInitScript(() => {
      for (const name of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, name, {
          get: () => {
            throw new DOMException("refused", "SecurityError");
          },
        });
    });
    await page.goto("about:blank");
    await page.goto(await newLink());
    await page.getByText(readyText).first().waitFor();
    await page.goto("about:blank");
    await page.goto(gateway.url);
    await page.getByLabel("Or use a token").fill(gateway.token);
    await page.keyboard.press("Enter");
    await page.getByText(readyText).first().waitFor();
  });

  test("by a link for another user asks before it replaces the token, and revokes a token that is not used", async () => {
    const [ann, bob] = await Promise.all(
      ["ann", "bob"].map((userId) => gateway.call("tokens.create", { scopes: ["read", "write"], userId })),
    );
    const page = await browser.open(gateway, "/", {
      token: ann?.token ?? "",
      link: await newLink(bob?.token),
    });
    const storedTokens = () =>
      page.evaluate(() => [localStorage, sessionStorage].map((area) => Object.values({ ...area }).join()));
    await page.getByText("This link signs in as bob.").waitFor();
    expect(await storedTokens()).toEqual(["", ann?.token]);
    await page.getByRole("button", { name: "Stay signed in as ann" }).click();
    await page.getByText(/^Signed in as ann/).waitFor();
    expect(await storedTokens()).toEqual(["", ann?.token]);
    const unused = async () => {
      const { tokens } = await gateway.call("tokens.list", {});
      return tokens.filter(({ createdBy }) => createdBy === bob?.tokenId);
    };
    await expect
      .poll(async () => (await unused()).map(({ revokedAt }) => typeof revokedAt))
      .toEqual(["number"]);

    await page.getByLabel("Message", { exact: true }).fill("a draft");
    await page.goto(await newLink(bob?.token));
    await page.getByRole("button", { name: "Sign in as bob" }).click();
    await page.getByText(/^Signed in as bob/).waitFor();
    expect(await page.getByLabel("Message", { exact: true }).inputValue()).not.toBe("a draft");
    expect((await storedTokens())[1]).not.toContain("a draft");
    const [first] = await storedTokens();
    expect(first).not.toContain(ann?.token);
    // No confirmation is needed for the same user.
    await page.goto(await newLink(bob?.token));
    await expect.poll(async () => (await storedTokens())[0]).not.toBe(first);
    await page.getByText(/^Signed in as bob/).waitFor();
  });

  test("by the QR code's link for a phone works once, and neither its code nor its token is logged", async () => {
    const page = await browser.open(gateway, "/access?tab=tokens");
    await page.getByRole("button", { name: "Open on a phone…" }).click();
    const dialog = page.getByRole("dialog", { name: "Open on a phone" });
    const image = dialog.getByRole("img", { name: "QR code for the link" });
    await image.waitFor();
    const url = await dialog.locator("code").innerText();
    await dialog.getByText("This link can be used once, to sign in one browser as you.").waitFor();
    const code = /#code=(\S+)$/.exec(url)?.[1] ?? "";
    expect(code).not.toBe("");
    // The image is the code of this link.
    const path = encodeQr(url)?.flatMap((row, y) =>
      row.flatMap((isDark, x) => (isDark ? [`M${x + 4} ${y + 4}h1v1h-1z`] : [])),
    );
    expect((await image.locator("path").getAttribute("d")) === path?.join("")).toBe(true);
    const phone = await browser.open(gateway, "/", { token: null, link: url, width: 360, height: 740 });
    await phone.getByText(readyText).first().waitFor();
    const token = await phone.evaluate(() => localStorage.getItem(`skein.token:${location.pathname}`));
    expect(token).toMatch(/^\S{20,}$/);
    const second = await browser.open(gateway, "/", { token: null, link: url });
    await second.getByText("skein link").first().waitFor();
    for (const given of [code, token ?? ""]) expect(gateway.output).not.toContain(given);
  });

  test("without a token shows the command that prints a link", async () => {
    const page = await browser.open(gateway, "/", { token: null });
    await page.getByText("skein link").first().waitFor();
  });

  test("with a token that does not exist says that it is not valid", async () => {
    const page = await browser.open(gateway, "/", { token: null });
    await page.getByLabel("Or use a token:").fill(`${gateway.token.slice(0, -1)}!`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "This token is not valid." }).waitFor();
    await page.getByLabel("Or use a token:").fill(gateway.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(readyText).first().waitFor();
  });

  test("ends with one notice when the token is revoked while the page is open", async () => {
    const { token, tokenId } = await gateway.call("tokens.create", {
      label: "reader",
      scopes: ["read", "write"],
    });
    const page = await browser.open(gateway, "/", { token });
    await page.getByText(readyText).first().waitFor();
    await expect.poll(() => page.title()).toBe("Session main · Skein");
    await page.getByLabel("Message", { exact: true }).fill("a confidential draft");
    await gateway.call("tokens.revoke", { tokenId });
    await page.getByText("skein link").first().waitFor();
    await expect
      .poll(() => page.getByRole("heading").allInnerTexts())
      .toEqual(["You are signed out: your token was revoked or has expired."]);
    await expect.poll(() => page.getByRole("alert").count()).toBe(0);
    await expect.poll(() => page.title()).toBe("Skein");
    for (const secret of [token, "confidential"])
      await expect.poll(() => storedData(page)).not.toContain(secret);
    // The page that says so also signs in again.
    await page.getByLabel("Or use a token:").fill(gateway.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText(readyText).first().waitFor();
  });

  test("ends with a notice when the token expires while the page is open", async () => {
    const page = await browser.open(gateway, "/", { token: null });
    const field = page.getByLabel("Or use a token:");
    const ended = page.getByText("You are signed out: your token was revoked or has expired.");
    const refused = page.getByRole("heading", { name: "This token is not valid." });
    const ready = page.getByText(readyText).first();
    let secret = "";
    /** Signs in with a token of this duration. Returns whether the page opened before the token expired. */
    const openPage = async (seconds: number) => {
      await field.waitFor();
      const expiresAt = Date.now() + seconds * 1000;
      ({ token: secret } = await gateway.call("tokens.create", { scopes: ["read"], expiresAt }));
      await field.fill(secret);
      await page.getByRole("button", { name: "Sign in" }).click();
      await ready.or(ended).or(refused).waitFor();
      return ready.isVisible();
    };
    // On a busy machine, the page takes longer.
    let seconds = 3;
    while (!(await openPage(seconds))) seconds *= 2;
    await ended.waitFor();
    await expect.poll(() => storedData(page)).not.toContain(secret);
  });

  test("by a link puts neither its code nor its token into the URL of a request or socket", async () => {
    const page = await browser.open(gateway, "/", { token: null });
    await page.getByText("skein link").first().waitFor();
    const urls: string[] = [];
    // Browsers do not send fragments.
    page.on("request", (request) => urls.push(request.url().replace(/#.*/, "")));
    page.on("websocket", (socket) => urls.push(socket.url()));
    const linked = await newLink();
    await page.goto(linked);
    await page.getByText(readyText).first().waitFor();
    await page.reload();
    await page.getByText(readyText).first().waitFor();
    const token = await page.evaluate(() => sessionStorage.getItem(`skein.token:${location.pathname}`));
    const code = /code=([^&]+)/.exec(linked)?.[1] ?? "";
    expect([token?.length, code.length].map((length = 0) => length > 10)).toEqual([true, true]);
    expect(urls.some((url) => url.startsWith("ws"))).toBe(true);
    for (const secret of [token ?? "", code])
      expect(urls.filter((url) => decodeURIComponent(url).includes(secret))).toEqual([]);
  });

  test("as two users in two tabs of one browser keeps them apart", async () => {
    const tokens = await Promise.all(
      ["ann", "bob"].map((user) =>
        gateway.call("tokens.create", { label: user, scopes: ["read", "write"], userId: user }),
      ),
    );
    const [ann, bob] = await browser.openTabs(
      gateway,
      tokens.map(({ token }) => token),
    );
    for (const [page, text] of [
      [ann, "repeat the words of ann"],
      [bob, "repeat the words of bob"],
    ] as const) {
      await page?.getByLabel("Message", { exact: true }).fill(text);
      await page?.getByLabel("Message", { exact: true }).press("Enter");
      await page
        ?.locator("[data-entry-id]")
        .getByText(text.replace("repeat ", ""), { exact: true })
        .waitFor();
    }
    await ann?.getByLabel("Message", { exact: true }).fill("a draft of ann");
    await ann?.reload();
    await bob?.reload();
    await ann?.getByText("the words of ann", { exact: true }).first().waitFor();
    await expect.poll(() => ann?.getByLabel("Message", { exact: true }).inputValue()).toBe("a draft of ann");
    expect(await bob?.getByLabel("Message", { exact: true }).inputValue()).toBe("");
    expect(await ann?.getByText("the words of bob").count()).toBe(0);
    await ann?.getByText("Signed in as ann").waitFor();
    // A tab whose token has expired does not switch to the other user.
    await gateway.call("tokens.revoke", { tokenId: tokens[0]?.tokenId ?? "" });
    await ann?.getByText("skein link").first().waitFor();
    await ann?.reload();
    await ann?.getByText("This browser is not signed in.").waitFor();
  });

  test("ends from the foot of the sidebar and from the palette, which both ask first", async () => {
    const openSigned = async () => {
      const { token } = await gateway.call("tokens.create", { label: "leaves", scopes: ["read", "write"] });
      const page = await browser.open(gateway, "/", { token });
      await page.getByText(readyText).first().waitFor();
      return page;
    };
    const page = await openSigned();
    const side = page.getByRole("complementary").first();
    await side.getByRole("button", { name: "Sign out" }).click();
    await side.getByRole("button", { name: "Sign out and revoke" }).click();
    await page.getByText("You have signed out.").waitFor();

    const other = await openSigned();
    await other.keyboard.press("Control+k");
    await other.getByRole("combobox").fill("sign out");
    await other.keyboard.press("Enter");
    const confirm = other.getByRole("main").getByRole("button", { name: "Sign out and revoke" });
    await expect.poll(() => confirm.evaluate((each) => each === document.activeElement)).toBe(true);
    await other.keyboard.press("Enter");
    await other.getByText("You have signed out.").waitFor();
  });

  test("by a link while the gateway is down keeps the code in memory, and works when it is back", async () => {
    const address = await newLink();
    const page = await browser.open(gateway, "/", { token: null });
    await page.getByText("This browser is not signed in.").waitFor();
    await gateway.stop("SIGKILL");
    await page.goto(address);
    await page.getByText("Your link is not used yet.").waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([location.href, history.state, { ...localStorage }, { ...sessionStorage }]),
    );
    expect(kept).not.toContain("code");
    gateway = await startGateway({ port: Number(new URL(gateway.url).port) });
    await page.getByText(readyText).first().waitFor();
  });
});

describe.skipIf(browser === null)("the console behind a proxy with a path prefix", () => {
  test.each(["keeps", "removes"])(
    "that it %s: signs in, loads its parts, follows events, and reloads at the same place",
    async (fate) => {
      const proxy = await PrefixProxy.start(gateway.url, basePath, { removesPrefix: fate === "removes" });
      try {
        const { url } = await gateway.call("links.create", {});
        const address = new URL(url, `${proxy.url}/`).href;
        const page = await browser.open(gateway, "/", { token: null, link: address });
        const text = `through a proxy that ${fate} it`;
        await page.getByRole("textbox", { name: "Message" }).fill(`repeat ${text}`);
        await page.keyboard.press("Enter");
        await page.locator("[data-entry-id][data-kind=agent]").getByText(text, { exact: true }).waitFor();
        await page.getByRole("link", { name: "Runs" }).click();
        const run = page.getByRole("main").getByText(`repeat ${text}`);
        await run.first().waitFor();
        await page.reload();
        await run.first().waitFor();
        expect(page.url()).toBe(`${proxy.url}/#/runs`);
        expect(proxy.refused.filter((path) => path !== "/favicon.ico")).toEqual([]);
        await proxy.close();
        await page.getByText("Gateway offline. Reconnecting…").waitFor();
      } finally {
        await proxy.close();
      }
    },
  );
});
