import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { ConsoleBrowser } from "./console-browser.ts";

const browser = (await ConsoleBrowser.launch()) as ConsoleBrowser;
const home = temporaryFolder("skein-console-");
let gateway: GatewayProcess;

const config = `agents: { main: { model: rehearsal/basic } }
`;

beforeAll(async () => {
  gateway = await GatewayProcess.start(home.path, { config });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop("SIGKILL");
  home.remove();
});
afterEach(() => browser?.closePages());

/** The link that `skein start` printed when it started. */
const link = () => /^ +link +(\S+)$/m.exec(gateway.output)?.[1] ?? "";
const readyText = "Nothing was said here yet.";

describe.skipIf(browser === null)("signing in to the console", () => {
  test("by the printed link works, and takes the code out of the address at once", async () => {
    const page = await browser.open(gateway, "/", { token: null, link: link() });
    await page.getByText(readyText).first().waitFor();
    expect(page.url()).not.toContain("code");
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
    expect(stored).not.toContain("skein_code");
    await page.reload();
    await page.getByText(readyText).first().waitFor();
    // The same link again, in a browser that has a token.
    await page.goto(link());
    await page.getByText(readyText).first().waitFor();
  });

  test("by a used link without a token shows the command that prints a new one", async () => {
    const page = await browser.open(gateway, "/", { token: null, link: link() });
    await page.getByText("skein link").first().waitFor();
    expect(page.url()).not.toContain("code");
  });

  test("without a token shows the command that prints a link", async () => {
    const page = await browser.open(gateway, "/", { token: null });
    await page.getByText("skein link").first().waitFor();
  });

  test("ends with one notice when the token is revoked while the page is open", async () => {
    const { token, tokenId } = await gateway.call("tokens.create", {
      label: "reader",
      scopes: ["read", "write"],
    });
    const page = await browser.open(gateway, "/", { token });
    await page.getByText(readyText).first().waitFor();
    await gateway.call("tokens.revoke", { tokenId });
    await page.getByText("skein link").first().waitFor();
    expect(await page.getByRole("alert").count()).toBeLessThanOrEqual(1);
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
    expect(stored).not.toContain(token);
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
    await ann?.reload();
    await ann?.getByText("the words of ann", { exact: true }).first().waitFor();
    expect(await ann?.getByText("the words of bob").count()).toBe(0);
  });
});
