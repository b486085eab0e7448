import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connect } from "../../src/entry-client.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { scriptedModel, temporaryFolder } from "../../src/entry-testing.ts";
import { defineTool } from "../../src/index.ts";
import { Started, startCli } from "../support/cli-process.ts";
import { GatewayProcess } from "../support/gateway-process.ts";
import type { RunListPayload, RunPayload } from "../support/payloads.ts";
import { supportProgram } from "../support/programs.ts";
import { brief, messagesOf, openRuns } from "../support/run-skein.ts";

const script = supportProgram("killed-tool-child");
const quiet = { SKEIN_LOGGING__LEVEL: "silent" };

let home: TemporaryFolder;
let root: string;

beforeEach(() => {
  home = temporaryFolder();
  root = join(home.path, "root");
});
afterEach(() => home.remove());

interface Ended {
  readonly runId: string;
  readonly state: string;
  readonly code: string | null;
  readonly reply: string | null;
}

async function cli(...args: string[]): Promise<{ out: string; err: string; code: unknown }> {
  const process = startCli(root, ...args);
  process.endInput();
  const code = await process.end();
  return { out: process.out, err: process.err, code };
}

async function runHealthy(...runId: string[]): Promise<Ended> {
  const process = new Started([script, root, "healthy", ...runId], quiet);
  expect(await process.end()).toBe(0);
  return JSON.parse(process.out) as Ended;
}

/**
 * Sends the order and kills its process four times. A fifth process finds that the run has been lost too many times.
 */
async function loseOrder(): Promise<string> {
  for (let kill = 1; kill <= 4; kill++)
    expect(await new Started([script, root, "fragile"], quiet).end()).toBe("SIGKILL");
  const { runId, state, code } = await runHealthy();
  expect({ state, code }).toEqual({ state: "error", code: "lost_too_often" });
  return runId;
}

test("[ANS4] [ANS5] input whose process was killed four times is shown as lost and can be retried once", async () => {
  const lost = await loseOrder();
  const listed = await cli("runs", "ls");
  expect(listed.out).toMatch(new RegExp(`^${lost} +lost `, "m"));
  expect(listed.out).toContain("Order the tickets");
  expect(listed.out).toContain(`skein runs retry ${lost}`);
  const shown = await cli("runs", "show", lost);
  expect(shown.out).toMatch(/^ +state +lost$/m);
  expect(shown.out).toMatch(/^ +said +Order the tickets$/m);
  expect(shown.out).toMatch(/^ +owner lost +4$/m);

  const retried = await cli("runs", "retry", lost, "--json");
  const { runId, retryOf, state } = JSON.parse(retried.out) as Record<string, string>;
  expect({ retryOf, state }).toEqual({ retryOf: lost, state: "queued" });
  const again = await cli("runs", "retry", lost, "--json");
  expect(JSON.parse(again.out)).toMatchObject({ runId, retryOf: lost });

  expect(await runHealthy(String(runId))).toEqual({ runId, state: "ok", code: null, reply: "Done." });
  const { run } = JSON.parse((await cli("runs", "show", lost, "--json")).out) as RunPayload;
  expect(run).toMatchObject({ state: "error", lost: 4, retriedAs: runId });
  const { run: retry } = JSON.parse((await cli("runs", "show", String(runId), "--json")).out) as RunPayload;
  expect(retry).toMatchObject({ state: "ok", retryOf: lost, reply: "Done." });
  expect(retry.lost).toBeUndefined();
  const lostNow = JSON.parse((await cli("runs", "ls", "--state", "lost", "--json")).out) as RunListPayload;
  expect(lostNow.runs).toEqual([]);

  const history = await cli("sessions", "show", "main");
  expect(history.out.match(/Order the tickets/g)).toHaveLength(1);
});

test("[ANS6] a retry after other messages answers the lost one, which is in the log once", async () => {
  const lost = await loseOrder();
  const model = scriptedModel((request) => ({
    text: JSON.stringify(request.prompt.at(-1)).includes("never answered") ? "Found." : "Later.",
  }));
  // The retry waits for a process that has the lost run's tool.
  const crash = defineTool({ name: "crash", description: "Does nothing.", execute: () => "nothing" });
  const { skein } = await openRuns({ dir: root, model, tools: [crash], app: "skein" });
  try {
    expect((await skein.session().send("Other").result).reply).toBe("Later.");
    const retry = await skein.runs.retry(lost);
    expect((await skein.ended(retry.runId)).outcome).toMatchObject({ state: "ok", reply: "Found." });
    const { sessionId } = await skein.session().open();
    const messages = (await messagesOf(skein, sessionId)).map(brief);
    expect(messages.filter((line) => line === "user: Order the tickets")).toHaveLength(1);
  } finally {
    await skein.close({ graceMs: 0 });
  }
});

test("[ANS5] a gateway retries lost input for a token with write scope", async () => {
  const lost = await loseOrder();
  const gateway = await GatewayProcess.start(home.path, {
    config: "defaults: { model: rehearsal/basic }\n",
  });
  try {
    const { runs } = await gateway.call("runs.list", { lost: true });
    expect(runs.map(({ runId }) => runId)).toEqual([lost]);
    const tokenWith = async (scope: "read" | "write") => {
      const { token } = await gateway.call("tokens.create", { scopes: [scope] });
      return connect(gateway.url, { token });
    };
    const [reader, writer] = [await tokenWith("read"), await tokenWith("write")];
    await expect(reader.call("runs.retry", { runId: lost })).rejects.toMatchObject({ code: "forbidden" });
    const { runId } = await writer.call("runs.retry", { runId: lost });
    const queued = await writer.call("agent.wait", { runId, timeoutMs: 0 });
    expect(queued).toMatchObject({ finished: false, state: "queued", waitsForApp: "skein" });
    expect(await runHealthy(runId)).toMatchObject({ state: "ok", reply: "Done." });
    const ended = await writer.call("agent.wait", { runId, timeoutMs: 150_000 });
    expect(ended).toMatchObject({ finished: true, state: "ok" });
    await expect(writer.call("runs.retry", { runId })).rejects.toMatchObject({ code: "conflict" });
    await expect(writer.call("runs.retry", { runId: "nowhere" })).rejects.toMatchObject({
      code: "not_found",
    });
    await Promise.all([reader.close(), writer.close()]);
  } finally {
    await gateway.stop("SIGKILL");
  }
});
