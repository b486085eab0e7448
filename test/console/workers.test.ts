import { hostname } from "node:os";
import { describe, expect, test } from "vitest";
import { HeldModel } from "../support/held-model.ts";
import { Machines } from "../support/machines.ts";
import { useConsole } from "./use-console.ts";

const { browser } = await useConsole();

describe.skipIf(browser === null)("the runs of several processes in the console", () => {
  test("show the process that executes them, and are listed with all processes", async (context) => {
    const machines = await Machines.open(context);
    const model = await HeldModel.start();
    try {
      const config = `agents: { main: {} }\n${model.config}`;
      const gateway = await machines.start("gateway", { config, args: ["--no-workers"] });
      const worker = await machines.start("worker", { config, args: ["--workers-only"] });
      const asked = { sessionKey: "main", message: "Hello", idempotencyKey: "1" };
      const { runId } = await gateway.call("chat.send", asked);
      const answering = await model.request(0);
      const listed = () => gateway.call("lanes.list", {});
      await expect.poll(listed).toHaveProperty("processes");
      const page = await browser.open(gateway, `/runs?run=${runId}`);
      const nameOf = (pid?: number) => `${hostname()}, process ${pid}`;
      const name = nameOf(worker.process.child.pid);
      const main = page.getByRole("main");
      await main.getByText(`Runs on ${name}`).waitFor();
      await page.getByRole("definition").filter({ hasText: name }).waitFor();
      const processes = main.getByRole("list", { name: "Processes" }).getByRole("listitem");
      await expect
        .poll(() => processes.allInnerTexts())
        .toEqual([`${nameOf(gateway.process.child.pid)} no workers`, `${name} 1 run`]);
      answering.finish("Hello.");
      await expect.poll(() => processes.allInnerTexts()).toContain(`${name} 0 runs`);
      await machines.stop(worker);
      await expect.poll(listed).not.toHaveProperty("processes");
      await gateway.call("chat.send", { ...asked, idempotencyKey: "3" });
      await main.getByText("No worker is running.").waitFor();
      await expect.poll(() => processes.count()).toBe(0);
    } finally {
      await machines.close();
      model.close();
    }
  });
});
