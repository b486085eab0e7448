import { afterEach, describe, expect, test, vi } from "vitest";
import type { ModelStep } from "../../src/entry-testing.ts";
import { defineTool } from "../../src/index.ts";
import { call, calls, gate } from "../support/family.ts";
import { closeAll, withScript } from "../support/skein.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await closeAll();
});

describe("the requests of a turn", () => {
  test("[LOP3] are at most maxSteps, and the session continues after them", async () => {
    let count = 0;
    const read = defineTool({ name: "read", description: "Reads.", execute: () => `result ${++count}` });
    const script = (_: unknown, index: number): ModelStep => (index < 3 ? call("read") : { text: "Done." });
    const { skein, model, lines } = await withScript(script, { tools: [read], maxSteps: 3 });
    const session = skein.session({ sessionId: "s" });
    await expect(session.send("Read everything").result).rejects.toMatchObject({ code: "step_limit" });
    expect(model.requests).toHaveLength(3);
    expect((await lines("s")).at(-1)).toBe("result: result 3");
    expect((await session.send("Stop").result).reply).toBe("Done.");
  });

  test.each<[string, ModelStep]>([
    ["a rate limit", { error: { status: 429, message: "Too many requests" } }],
    ["a server error", { error: { status: 500, message: "Internal error" } }],
    ["a broken stream", { text: "Half an ans", cut: true }],
  ])("[LOP8] are repeated retries.max times after %s", async (_, failure) => {
    // The delay before a retry is a random fraction of its maximum.
    vi.spyOn(Math, "random").mockReturnValue(0);
    const config = { retries: { max: 2 } };
    const script = (_request: unknown, index: number) => (index === 5 ? { text: "Here I am." } : failure);
    const { skein, model, lines } = await withScript(script, {}, { config });
    const session = skein.session({ sessionId: "s" });
    await expect(session.send("Hello").result).rejects.toMatchObject({ code: "model_failed" });
    expect(model.requests).toHaveLength(3);
    expect((await session.send("Hello again").result).reply).toBe("Here I am.");
    expect(model.requests).toHaveLength(6);
    expect((await lines("s")).slice(-2)).toEqual(["user: Hello again", "assistant: Here I am."]);
  });

  test("[LOP8] are not repeated after a permanent error", async () => {
    const { skein, model } = await withScript([{ error: { status: 400, message: "No such field" } }]);
    await expect(skein.session().send("Hello").result).rejects.toMatchObject({ code: "model_failed" });
    expect(model.requests).toHaveLength(1);
  });
});

describe("the tools of a turn", () => {
  test("[LOP5] write their results in the order of the calls", async () => {
    const { tool: slow, open } = gate("slow");
    const fast = defineTool({ name: "fast", description: "Is fast.", execute: () => "fast" });
    const steps = [calls(["slow", {}], ["fast", {}]), { text: "Done." }];
    const { skein, until, lines } = await withScript(steps, { tools: [slow, fast] });
    const turn = skein.session({ sessionId: "s" }).send("Both");
    await until("run.tool", (event) => event.phase === "result" && event.toolName === "fast");
    expect((await lines("s")).at(-1)).toMatch(/^assistant/);
    open();
    await turn.result;
    expect((await lines("s")).slice(2, 4)).toEqual([expect.not.stringContaining("fast"), "result: fast"]);
  });
});

describe("a session with an open run", () => {
  test("[RUN29] is neither reset nor branched while the run is running", async () => {
    const { tool, open } = gate();
    const { skein, until } = await withScript([call("gate"), { text: "Done." }], { tools: [tool] });
    const session = skein.session({ sessionId: "s" });
    const turn = session.send("Wait");
    await until("run.tool");
    await expect(session.reset()).rejects.toMatchObject({ code: "conflict" });
    await expect(session.branch(null)).rejects.toMatchObject({ code: "conflict" });
    open();
    await turn.result;
    expect(await session.branch(null)).toMatchObject({ leafId: null });
    await session.reset();
  });

  test("[RUN29] is neither reset nor branched while the run waits for an approval", async () => {
    const ask = defineTool({ name: "ask", description: "Asks.", approval: true, execute: () => "done" });
    const { skein, until } = await withScript([call("ask"), { text: "Done." }], { tools: [ask] });
    const session = skein.session({ sessionId: "s" });
    const turn = session.send("Ask");
    await until("run.waiting");
    await expect(session.reset()).rejects.toMatchObject({ code: "conflict" });
    await expect(session.branch(null)).rejects.toMatchObject({ code: "conflict" });
    const [approval] = await skein.approvals.list();
    await skein.approvals.resolve(approval?.approvalId ?? "", "approved");
    await turn.result;
    await session.reset();
  });
});
