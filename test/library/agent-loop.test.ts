import { afterEach, describe, expect, test, vi } from "vitest";
import { createStore } from "../../src/entry-store.ts";
import type { ModelStep } from "../../src/entry-testing.ts";
import { defineTool, HookStop } from "../../src/index.ts";
import { call, calls, gate, withParts } from "../support/family.ts";
import { pngOf } from "../support/images.ts";
import { closeAll, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";

/** Lets everything that waits for nothing but promises go on. */
async function ticks(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve));
}

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
  test("[LOP5] [LOP9] have their results written as they finish, and sent in the order of the calls", async () => {
    const { tool: slow, open } = gate("slow");
    const fast = defineTool({ name: "fast", description: "Is fast.", execute: () => "fast" });
    const steps = [calls(["slow", {}], ["fast", {}]), { text: "Done." }];
    const { skein, model, lines } = await withScript(steps, { tools: [slow, fast] });
    const turn = skein.session({ sessionId: "s" }).send("Both");
    await soon(async () => (await lines("s")).at(-1)).toBe("result: fast");
    open();
    await turn.result;
    expect((await lines("s")).slice(2, 4)).toEqual(["result: fast", "result: open"]);
    const sent = JSON.stringify(model.requests[1]);
    expect(sent.indexOf('"toolName":"slow"')).toBeLessThan(sent.indexOf('"toolName":"fast"'));
  });

  test("[LOP5] have their results sent in the order of the calls, also without the repair of pairing", async () => {
    const { tool: slow, open } = gate("slow");
    const fast = defineTool({ name: "fast", description: "Is fast.", execute: () => "fast" });
    const steps = [calls(["slow", {}], ["fast", {}]), { text: "Done." }];
    const policy = { repairToolPairing: false };
    const config = { models: { providers: { rehearsal: { models: { script: { policy } } } } } };
    const { skein, model, lines } = await withScript(steps, { tools: [slow, fast] }, { config });
    const turn = skein.session({ sessionId: "s" }).send("Both");
    await soon(async () => (await lines("s")).at(-1)).toBe("result: fast");
    open();
    await turn.result;
    const sent = JSON.stringify(model.requests[1]);
    expect(sent.indexOf('"toolName":"slow"')).toBeLessThan(sent.indexOf('"toolName":"fast"'));
  });

  test("[LOP10] that have the same ID in an answer each have their own result", async () => {
    const { tool: slow, open } = gate("slow");
    const fast = defineTool({ name: "fast", description: "Is fast.", execute: () => "fast" });
    const sameId = { id: "x", arguments: {} };
    const both = {
      calls: [
        { ...sameId, name: "slow" },
        { ...sameId, name: "fast" },
      ],
    };
    const { skein, model, lines } = await withScript([both, { text: "Done." }], { tools: [slow, fast] });
    const turn = skein.session({ sessionId: "s" }).send("Both");
    await soon(async () => (await lines("s")).at(-1)).toBe("result: fast");
    open();
    await turn.result;
    expect((await lines("s")).slice(2, 4)).toEqual(["result: fast", "result: open"]);
    const sent = model.requests[1]?.prompt.findLast(({ role }) => role === "tool");
    expect(sent?.content).toMatchObject([
      { toolCallId: "x", toolName: "slow" },
      { toolCallId: "x_2", toolName: "fast" },
    ]);
  });

  test("[LOP9] that finish together have their results written in one append", async () => {
    const fast = defineTool({ name: "fast", description: "Is fast.", execute: () => "fast" });
    const steps = [calls(["fast", {}], ["fast", {}], ["fast", {}]), { text: "Done." }];
    const store = await createStore({ memory: true });
    const append = vi.spyOn(store.sessions, "append");
    const { skein, lines } = await withScript(steps, { tools: [fast] }, { store });
    await skein.session({ sessionId: "s" }).send("All").result;
    const sizes = append.mock.calls.map(([, , items]) => items.length);
    expect(sizes.filter((size) => size > 0)).toEqual([1, 1, 3, 1]);
    expect((await lines("s")).slice(2, 5)).toEqual(["result: fast", "result: fast", "result: fast"]);
    await store.close();
  });
});

describe("an image from a tool", () => {
  const png = pngOf(10, 10, 90_000);

  test.each([
    ["base64", png.toString("base64")],
    ["a data URL", `data:image/png;base64,${png.toString("base64")}`],
  ])("reaches the model undamaged if it is stored as a blob: %s", async (_, data) => {
    const show = defineTool({
      name: "show",
      description: "Shows.",
      execute: () => ({ content: [{ type: "image" as const, data, mimeType: "image/png" }] }),
    });
    const { skein, model } = await withScript([call("show"), { text: "Seen." }], { tools: [show] });
    await skein.session({ sessionId: "s" }).send("Show me").result;
    expect(JSON.stringify(model.requests[1]?.prompt).includes(png.toString("base64"))).toBe(true);
  });
});

describe("a hook that stops a run before a tool call", () => {
  test("ends the run, and the tool is not called", async () => {
    const execute = vi.fn(() => "deleted");
    const tool = defineTool({ name: "delete", description: "Deletes.", execute });
    const { skein, model } = await withScript([call("delete"), { text: "Done." }], { tools: [tool] });
    skein.hooks.on("before_tool_call", () => {
      throw new HookStop("enough");
    });
    const turn = skein.session({ sessionId: "s" }).send("Delete it");
    await expect(turn.result).rejects.toMatchObject({ code: "hook_stopped", message: "enough" });
    expect([execute.mock.calls.length, model.requests.length]).toEqual([0, 1]);
  });
});

describe("a run that is stopped while a result is being written", () => {
  test.each(["a hook", "an abort"])("[LOP11] ends at once, also after it has slept: %s", async (how) => {
    const store = await createStore({ memory: true });
    const [isWriting, isStopped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    type Sessions = typeof store.sessions;
    const original = (Object.getPrototypeOf(store.sessions) as Sessions).append;
    async function append(this: Sessions, ...given: Parameters<typeof original>) {
      if (JSON.stringify(given).includes("the fast result")) {
        isWriting.resolve();
        await isStopped.promise;
        await ticks();
      }
      return original.apply(this, given);
    }
    Object.assign(store.sessions, { append });
    const fast = defineTool({ name: "fast", description: "Is fast.", execute: () => "the fast result" });
    const slow = defineTool({ name: "slow", description: "Is slow.", execute: () => isWriting.promise });
    const spawn = calls(["sessions_spawn", { task: "Geese" }], ["sessions_yield", {}]);
    const parts = { Plan: [spawn, calls(["fast", {}], ["slow", {}])], Geese: [{ text: "12" }] };
    const { skein, linesAt } = await withParts(parts, { agent: { tools: [fast, slow] }, store });
    let stops = 0;
    skein.hooks.on("after_tool_call", ({ toolName }) => {
      if (toolName !== "slow") return;
      stops++;
      isStopped.resolve();
      if (how === "a hook") throw new HookStop("enough");
      turn.abort();
      return new Promise<undefined>(() => undefined);
    });
    const turn = skein.session().send("Plan");
    const code = how === "a hook" ? "hook_stopped" : "aborted";
    await expect(turn.result).rejects.toMatchObject({ code });
    expect(stops).toBe(1);
    const lines = await linesAt("agent:main:main");
    expect(lines.filter((line) => line.startsWith("result")).slice(-2)).toEqual([
      "result: the fast result",
      expect.stringContaining("No result was recorded"),
    ]);
    await store.close();
  });
});

describe("results of an agent's own sessions_send", () => {
  test("[LOP9] are written even if they name the same run", async () => {
    const send = defineTool({
      name: "sessions_send",
      description: "Sends.",
      execute: () => ({ runId: "r-1" }),
    });
    const steps = [
      calls(["sessions_send", {}], ["sessions_send", {}]),
      call("sessions_send"),
      { text: "Done." },
    ];
    const { skein, lines } = await withScript(steps, { tools: [send] });
    await skein.session({ sessionId: "s" }).send("Send").result;
    expect((await lines("s")).filter((line) => line.startsWith("result"))).toEqual(
      Array.from({ length: 3 }, () => 'result: {"runId":"r-1"}'),
    );
  });
});

describe("an answer that a hook rejects", () => {
  test("is charged to its run", async () => {
    const { skein } = await withScript([{ text: "Too expensive." }]);
    skein.hooks.on("llm_output", () => {
      throw new HookStop("enough");
    });
    const turn = skein.session({ sessionId: "s" }).send("Hello");
    await expect(turn.result).rejects.toMatchObject({ code: "hook_stopped" });
    expect((await skein.runs.get(turn.runId))?.usage?.output).toBeGreaterThan(0);
  });
});

describe("a session that ends in many entries that are not messages", () => {
  test("is answered", async () => {
    const { skein, lines } = await withScript([{ text: "Yes." }, { text: "Still." }]);
    const session = skein.session({ sessionId: "s" });
    await session.send("Hello").result;
    const draft = { type: "custom", customType: "app.step", data: {} } as const;
    await session.appendEntries(Array.from({ length: 1200 }, () => ({ draft })));
    expect((await session.send("Still there?").result).reply).toBe("Still.");
    expect((await lines("s")).slice(-2)).toEqual(["user: Still there?", "assistant: Still."]);
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
