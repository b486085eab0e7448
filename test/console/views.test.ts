import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { makeFamily } from "../../scripts/sample-family.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { ConsoleBrowser, sessionRoute } from "./console-browser.ts";

const browser = (await ConsoleBrowser.launch()) as ConsoleBrowser;
const home = temporaryFolder("skein-console-views-");
const main = "agent:main:main";
let gateway: GatewayProcess;

beforeAll(async () => {
  await makeFamily(`${home.path}/root`, { say: () => undefined });
  const config = readFileSync(`${home.path}/root/skein.yaml`, "utf8");
  gateway = await GatewayProcess.start(home.path, { config });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop("SIGKILL");
  home.remove();
});
afterEach(() => browser?.closePages());

const open = (route: string) => browser.open(gateway, route);
const figures = (text: string) =>
  [...text.matchAll(/[\d,]+/g)].map(([digits]) => Number(digits.replaceAll(",", "")));

/** The entry of the last answer on the active branch. */
async function lastAnswer(): Promise<string> {
  const { entries } = await gateway.call("sessions.entries", { key: main, limit: 1000 });
  const found = entries.findLast((entry) => entry.type === "message" && entry.message.role === "assistant");
  return found?.id ?? "";
}

describe.skipIf(browser === null)("the X-ray in the console", () => {
  test("opens from an answer, with parts that sum to the total, changes and the wire body", async () => {
    const answer = await lastAnswer();
    const page = await open(sessionRoute(main));
    const row = page.locator(`[data-entry-id="${answer}"]`);
    await row.hover();
    await row.getByRole("link", { name: "What it saw" }).click();
    await page.getByText("The request for this answer").first().waitFor();
    const tokens = page.getByRole("region", { name: "Tokens" });
    const [total = 0] = figures(await tokens.locator("p").first().innerText());
    const parts = (await tokens.getByRole("listitem").allInnerTexts()).flatMap(figures);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(total);
    expect(await page.getByRole("list", { name: "The request" }).innerText()).not.toContain(
      "What is ready for spring:",
    );
    await page.getByText(/^The body of the request/).click();
    await page.getByText('"messages"').first().waitFor();
  });
});

describe.skipIf(browser === null)("runs and approvals in the console", () => {
  test("say why a run waits, with a link to the approval, which can be denied with a note", async () => {
    const page = await open("/work");
    await page.getByRole("link", { name: /Answer it/ }).click();
    await page.getByText("sessions_send").first().waitFor();
    await page.keyboard.press("d");
    await page.keyboard.type("not today");
    await page.keyboard.press("Enter");
    await expect
      .poll(async () => (await gateway.call("approvals.list", { open: false })).approvals[0])
      .toMatchObject({ answer: "denied", note: "not today" });
    await page.getByRole("main").getByText("not today").first().waitFor();
  });
});

describe.skipIf(browser === null)("the palette of the console", () => {
  test("finds sessions and pages by keyboard alone", async () => {
    const page = await open("/");
    await page.getByRole("region", { name: "Transcript", exact: true }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").waitFor();
    await page.keyboard.type("weather");
    await page
      .getByRole("option", { name: /weather/ })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("research the weather in the first week of spring").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("usage");
    await page.getByRole("option", { name: /Usage/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Without a price").first().waitFor();
  });
});
