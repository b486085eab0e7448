import type { TestContext } from "vitest";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GatewayProcess } from "../support/gateway-process.ts";
import { HeldModel } from "../support/held-model.ts";
import { Machines } from "../support/machines.ts";
import { SplittingProxy } from "../support/splitting-proxy.ts";
import { sessionRoute, shownEntries } from "./console-browser.ts";
import { useConsole } from "./use-console.ts";

const { browser } = await useConsole();
const key = "agent:main:page-shared";
let machines: Machines;
let model: HeldModel;

beforeEach(async (context: TestContext) => {
  machines = await Machines.open(context);
  model = await HeldModel.start();
});
afterEach(async () => {
  await machines?.close();
  model?.close();
});

const liveText = async (gateway: GatewayProcess) =>
  (await gateway.call("chat.live", { sessionKey: key })).runs[0]?.text;

describe.skipIf(browser === null)("a page whose calls and streams reach different gateways", () => {
  test("shows an answer to its end that it joined in the middle", async () => {
    const start = { config: `agents: { main: {} }\n${model.config}` };
    // The numbers of the gateway that starts first are lower.
    const streams = await machines.start("a", start);
    const calls = await machines.start("b", start);
    const message = { sessionKey: key, message: "tell me a story", idempotencyKey: "1" };
    const { runId } = await calls.call("chat.send", message);
    const request = await model.request(0);
    request.stream("Once upon a time ");
    for (const gateway of [calls, streams])
      await expect.poll(() => liveText(gateway)).toBe("Once upon a time ");
    const proxy = await SplittingProxy.to({ calls, streams });
    const page = await browser.open({ url: proxy.url, token: calls.token }, sessionRoute(key));
    const live = page.locator("[data-live]");
    await live.getByText("Once upon a time").waitFor();
    request.stream("there was a loom");
    await live.getByText("Once upon a time there was a loom").waitFor();
    request.finish(".");
    await calls.call("agent.wait", { runId, timeoutMs: 150_000 });
    await expect.poll(() => live.count()).toBe(0);
    const { entries } = await calls.call("sessions.entries", { key });
    const stored = entries.filter(({ type }) => type === "message").map(({ id }) => id);
    await expect.poll(() => shownEntries(page)).toEqual(stored);
    await page.getByText("Once upon a time there was a loom.").waitFor();
    await proxy.close();
  });
});
