import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { ModelStep } from "../../../src/entry-testing.ts";
import type { Turn } from "../../../src/index.ts";
import { defineTool } from "../../../src/index.ts";
import type { HeldRun } from "../../../src/runs/contract.ts";
import { brief, entriesOf, messagesOf, pairingProblems } from "../../support/run-skein.ts";
import { openRunsInside } from "../../support/run-skein-inside.ts";

const base = mkdtempSync(join(tmpdir(), "skein-restart-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
const where = { sessionId: "s" };

const tools = [
  defineTool({ name: "never", description: "Never ends.", execute: () => new Promise(() => undefined) }),
  defineTool({ name: "ask", description: "Asks.", approval: true, execute: () => "done" }),
];

/** A turn whose process closes at a given event. The next process finishes the turn. */
async function restarted(step: ModelStep, isThere: (event: { readonly type: string }) => boolean) {
  const dir = mkdtempSync(join(base, "case-"));
  const before = await openRunsInside({ dir, tools, script: [step] });
  const turn: Turn = before.skein.session(where).send("Please", { idempotencyKey: "k" });
  for await (const event of turn) if (isThere(event)) break;
  await before.skein.close({ graceMs: 0 });
  const { skein, reports } = await openRunsInside({ dir, tools, script: [{ text: "The whole answer." }] });
  const { reply } = await skein.session(where).send("Please", { idempotencyKey: "k" }).result;
  const messages = await messagesOf(skein, "s");
  const entries = await entriesOf(skein, "s");
  const run = await skein.runs.get(turn.runId);
  await skein.close({ graceMs: 0 });
  expect(reply).toBe("The whole answer.");
  // If the close did not wait for a run, that run would count as lost in the next process.
  expect(run?.lost).toBe(0);
  expect([...before.reports, ...reports]).toEqual([]);
  expect(pairingProblems(messages)).toEqual([]);
  return { said: messages.map(brief), entries };
}

describe("a process that is closed gracefully", () => {
  test("[LIB27] during an answer: no abort, the model is asked again, and the streamed text is kept for people", async () => {
    const step = { text: "Half an answer", stall: true };
    const { said, entries } = await restarted(step, (event) => JSON.stringify(event).includes("swer"));
    expect(said).toEqual(["user: Please", "assistant: The whole answer."]);
    const kept = entries.find((entry) => entry.type === "custom" && entry.customType === "skein.partial");
    expect(kept).toMatchObject({ data: { text: "Half an answer" } });
  });

  test("[LIB27] in a tool: its call is reported as interrupted", async () => {
    const { said } = await restarted({ calls: [{ name: "never" }] }, ({ type }) => type === "tool_call");
    expect(said[2]).toMatch(/interrupted/);
    expect(said).toHaveLength(4);
  });

  test("[LIB27] while it waits for an approval: the close is not delayed", async () => {
    const { said } = await restarted({ calls: [{ name: "ask" }] }, ({ type }) => type === "approval");
    expect(said).toHaveLength(4);
  });

  test.each([
    ["this build", (request: object) => request],
    [
      "an earlier build",
      ({ callDigest: _, isReplay: _isReplay, ...request }: Record<string, unknown>) => request,
    ],
  ])("[LIB13] an approval requested by %s can still be answered after a restart", async (_, asRequested) => {
    const dir = mkdtempSync(join(base, "answered-"));
    const ask = defineTool({
      name: "ask",
      description: "Asks.",
      approval: true,
      replay: "safe",
      execute: () => "done",
    });
    const before = await openRunsInside({ dir, tools: [ask], script: [{ calls: [{ name: "ask" }] }] });
    const { runs } = before.inside;
    const requestApproval = runs.requestApproval.bind(runs);
    Object.assign(runs, {
      requestApproval: (held: HeldRun, request: object) =>
        requestApproval(held, asRequested({ ...request }) as Parameters<typeof requestApproval>[1]),
    });
    const turn = before.skein.session(where).send("Please");
    for await (const event of turn) if (event.type === "approval") break;
    await before.skein.close({ graceMs: 0 });
    const { skein } = await openRunsInside({ dir, workers: false });
    const [asked] = await skein.approvals.list();
    await skein.approvals.resolve(asked?.approvalId ?? "", "approved");
    await skein.close();
    const after = await openRunsInside({ dir, tools: [ask], script: [{ text: "The whole answer." }] });
    await after.skein.ended(turn.runId);
    const said = (await messagesOf(after.skein, "s")).map(brief);
    expect(await after.skein.approvals.list({ open: false })).toHaveLength(1);
    await after.skein.close({ graceMs: 0 });
    expect(said).toEqual([
      "user: Please",
      "assistant: →ask",
      "toolResult: done",
      "assistant: The whole answer.",
    ]);
  });

  test("[LIB27] between two attempts", async () => {
    const step = { error: { status: 503, message: "Busy", retryAfter: "30" } };
    const { said } = await restarted(step, ({ type }) => type === "retry");
    expect(said).toEqual(["user: Please", "assistant: The whole answer."]);
  });

  test("[LIB27] at any moment: a run claimed during the close runs in the next process", async () => {
    const dir = mkdtempSync(join(base, "any-"));
    for (let round = 0; round < 30; round++) {
      const open = await openRunsInside({ dir, script: () => ({ text: "Yes." }) });
      open.skein.session({ sessionId: `r${round}` }).send("Please", { idempotencyKey: `k${round}` });
      for (let tick = 0; tick < round; tick++) await new Promise((resolve) => setImmediate(resolve));
      await open.skein.close({ graceMs: 0 });
      expect(open.reports).toEqual([]);
    }
    const { skein } = await openRunsInside({ dir, script: () => ({ text: "Yes." }) });
    for (let round = 0; round < 30; round++) {
      const turn = skein.session({ sessionId: `r${round}` }).send("Please", { idempotencyKey: `k${round}` });
      expect((await turn.result).reply).toBe("Yes.");
      const said = (await messagesOf(skein, `r${round}`)).map(brief);
      expect(said).toEqual(["user: Please", "assistant: Yes."]);
    }
    await skein.close({ graceMs: 0 });
  });
});

describe("a process that is blocked past its own lease", () => {
  test("[KIL2] claims its own run again, and does not repeat completed work", async () => {
    const dir = mkdtempSync(join(base, "held-up-"));
    const done: string[] = [];
    const slow = defineTool({
      name: "slow",
      description: "Holds the whole process up.",
      execute: async () => {
        done.push("slow");
        ahead = 60_000;
        // Waits until a sweep finds the expired lease.
        while (done.length === 1 && !isTakenUp) await new Promise((resolve) => void setTimeout(resolve, 5));
        return "done";
      },
    });
    let isTakenUp = false;
    let ahead = 0;
    const clock = { now: () => Date.now() + ahead };
    const script = [{ calls: [{ name: "slow" }] }, { text: "After all." }];
    const { skein, reports, inside } = await openRunsInside({
      dir,
      tools: [slow],
      script,
      clock,
      leaseMs: 30_000,
    });
    const { runs } = inside;
    // A late heartbeat finds that the run has already been reclaimed.
    const renew = runs.renew.bind(runs);
    const late = async (...args: Parameters<typeof renew>) => {
      await runs.sweep();
      return renew(...args);
    };
    Object.assign(runs, { renew: late });
    skein.subscribe(({ type }) => {
      if (type === "run.recovered") isTakenUp = true;
    });
    const { reply, runId } = await skein.session(where).send("Slowly").result;
    expect(reply).toBe("After all.");
    expect(done).toEqual(["slow"]);
    expect((await skein.runs.get(runId))?.lost).toBe(1);
    const messages = await messagesOf(skein, "s");
    expect(pairingProblems(messages)).toEqual([]);
    expect(messages.map(brief)[2]).toMatch(/interrupted/);
    expect(messages).toHaveLength(4);
    expect(reports).toEqual([]);
    await skein.close({ graceMs: 0 });
  });
});
