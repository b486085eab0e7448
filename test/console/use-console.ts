import { readFileSync } from "node:fs";
import { afterAll, afterEach } from "vitest";
import { makeFamily } from "../../scripts/sample-family.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { GatewayStart } from "../support/gateway-process.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import { HeldModel } from "../support/held-model.ts";
import { ConsoleBrowser } from "./console-browser.ts";

/**
 * Starts a browser for the tests of one file. Pages close after each test, as do the runs that wait for a held model.
 * Everything else that was started closes after the last test. `browser` is `null` if no browser can start here; the tests are skipped then.
 */
export async function useConsole() {
  const browser = (await ConsoleBrowser.launch()) as ConsoleBrowser;
  const home = temporaryFolder("skein-console-");
  let gateway: GatewayProcess | null = null;
  let model: HeldModel | null = null;

  afterEach(async () => {
    try {
      await browser?.closePages();
    } finally {
      if (model !== null && gateway !== null) await endRuns(gateway);
    }
  });
  afterAll(async () => {
    await Promise.all([browser?.close(), gateway?.stop("SIGKILL")]);
    model?.close();
    home.remove();
  });

  return {
    browser,
    home,
    /** Starts the gateway, or starts it again after it was stopped. */
    async startGateway(start: GatewayStart = {}): Promise<GatewayProcess> {
      gateway = await GatewayProcess.start(home.path, start);
      return gateway;
    },
    async startModel(): Promise<HeldModel> {
      model = await HeldModel.start();
      return model;
    },
    /** Creates the sample family before the gateway starts. Returns its configuration. */
    async createFamily(): Promise<string> {
      await makeFamily(`${home.path}/root`, { say: () => undefined });
      return readFileSync(`${home.path}/root/skein.yaml`, "utf8");
    },
  };
}

/** Runs that a failed test left open would take the model requests of the next test and add to its approvals. */
async function endRuns(gateway: GatewayProcess): Promise<void> {
  for (;;) {
    const states = ["queued", "running", "waiting", "sleeping"] as const;
    const { runs } = await gateway.call("runs.list", { states });
    if (runs.length === 0) return;
    for (const { runId } of runs) await gateway.call("runs.abort", { runId });
    for (const { runId } of runs) await gateway.call("agent.wait", { runId, timeoutMs: 150_000 });
  }
}
