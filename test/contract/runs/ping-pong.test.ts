import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { deliveryId } from "../../../src/core/hashed-id.ts";
import { scriptedModel } from "../../../src/entry-testing.ts";
import type { ToolContext } from "../../../src/index.ts";
import { defineAgent, defineTool } from "../../../src/index.ts";
import { acceptRequest } from "../../../src/sessions/delivery.ts";
import { brief, messagesOf } from "../../support/run-skein.ts";
import type { RunSkeinInside } from "../../support/run-skein-inside.ts";
import { openRunsInside } from "../../support/run-skein-inside.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-pong-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const config = join(folder, "skein.yaml");
const prices = "models: { model: { price: { input: 1, output: 2 } } }";
writeFileSync(
  config,
  `logging: { level: error }\nmodels: { providers: { test: { baseUrl: "http://127.0.0.1:9/v1", ${prices} } } }\n`,
);

/** Always forwards the message to the other session. */
async function pass(
  { inside }: RunSkeinInside,
  kind: "send" | "ping_pong",
  context: ToolContext,
): Promise<string> {
  const { sessionId, sessionKey, runId, toolCallId, userId, agentId } = context;
  const { store, runs } = inside;
  const session = await store.sessions.get({ agentId }, sessionId);
  const run = await runs.get(runId);
  const other = sessionId === "ping" ? "pong" : "ping";
  const target = await store.sessions.get({ agentId }, other);
  if (session === null || run === null || target === null) throw new Error("there is no such run");
  const { rootId, hops } = run.root;
  const delivery = {
    id: deliveryId(sessionId, runId, toolCallId),
    from: { uid: session.uid, userId, agentId, key: sessionKey, sessionId },
    runId,
    kind,
    text: "Your turn.",
    root: { rootId, hops: kind === "send" ? hops + 1 : hops },
    tool: "pass",
    isBetweenStrangers: true,
  };
  await runs.accept(acceptRequest(delivery, target));
  return "passed on";
}

describe("two sessions that would answer each other endlessly", () => {
  test.each([
    ["send", /hops: 9 \(maximum: 8\)|pingPong: \d+ \(maximum: \d+\)/],
    ["ping_pong", /pingPong: \d+ \(maximum: \d+\)/],
  ] as const)("[FAM13] %s: stop at the limit, and the cost is known", async (kind, refusal) => {
    const model = scriptedModel(({ prompt }) =>
      prompt.at(-1)?.role === "tool" ? { text: "Passed." } : { calls: [{ name: "pass" }] },
    );
    const tool = defineTool({
      name: "pass",
      description: "Passes on.",
      replay: "safe",
      execute: (_, context) => pass(open, kind, context),
    });
    const open: RunSkeinInside = await openRunsInside({
      config,
      models: { "test/model": model },
      agents: [defineAgent({ id: "main", model: "test/model", tools: [tool] })],
    });
    const { skein } = open;
    const { store } = open.inside;
    await store.sessions.create(
      { agentId: "main" },
      { key: "agent:main:session:pong", sessionId: "pong", cwd: "/" },
    );
    const first = skein.session({ sessionId: "ping" }).send("Begin");
    await first.result;
    while ((await skein.runs.list({ states: ["queued", "running", "waiting"] })).length > 0)
      await new Promise((resolve) => void setTimeout(resolve, 5));
    const said = [...(await messagesOf(skein, "ping")), ...(await messagesOf(skein, "pong"))].map(brief);
    const refused = said.filter((text) => refusal.test(text));
    expect(refused, said.join("\n")).toHaveLength(1);
    const runs = await skein.runs.list({ rootId: first.runId });
    expect(runs.every(({ state }) => state === "ok")).toBe(true);
    const figures = await skein.budget(first.runId);
    const spent = runs.reduce((sum, { usage }) => sum + (usage.costUsd ?? 0), 0);
    expect(figures?.runs).toBe(runs.length);
    expect(figures?.costUsd).toBeGreaterThan(0);
    expect(figures?.costUsd).toBeCloseTo(spent, 10);
    await skein.close({ graceMs: 0 });
  });
});
