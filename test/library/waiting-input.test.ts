import Type from "typebox";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTool } from "../../src/index.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";

afterEach(closeAll);

/** A tool that waits until the test releases it. */
function gate(approval = false) {
  const begun = Promise.withResolvers<void>();
  const open = Promise.withResolvers<string>();
  const tool = defineTool({
    name: "gate",
    description: "Waits.",
    approval,
    execute: async (_, { signal }) => {
      begun.resolve();
      signal.addEventListener("abort", () => open.reject(signal.reason));
      return open.promise;
    },
  });
  return { tool, begun: begun.promise, open: (text = "open") => open.resolve(text) };
}

const calling = { calls: [{ name: "gate", id: "g1" }] };

describe("input while a turn runs", () => {
  test("[LIB8] steered input follows the results, and both turns have one outcome", async () => {
    const { tool, begun, open } = gate();
    const { skein, lines, until } = await withScript([calling, { text: "Both done." }], { tools: [tool] });
    const session = skein.session({ sessionId: "a" });
    const first = session.send("First");
    await begun;
    const second = session.send("Second");
    await until("run.queued", ({ runId }) => runId === second.runId);
    open();
    const [one, two] = await Promise.all([first.result, second.result]);
    expect(one.reply).toBe("Both done.");
    expect(two).toMatchObject({ reply: "Both done.", runId: second.runId });
    expect(await skein.runs.get(second.runId)).toMatchObject({ state: "merged", mergedInto: first.runId });
    let text = "";
    for await (const event of second) if (event.type === "text") text += event.delta;
    expect(text).toBe("Both done.");
    expect(await lines("a")).toEqual([
      "user: First",
      "assistant: (gate)",
      "result: open",
      "user: Second",
      "assistant: Both done.",
    ]);
  });

  test("[LIB9] a follow-up is the next turn, in order", async () => {
    const { tool, begun, open } = gate();
    const { skein, lines } = await withScript(
      (_, index) => (index === 0 ? calling : { text: `Done ${index}.` }),
      {
        tools: [tool],
      },
    );
    const session = skein.session({ sessionId: "a" });
    const first = session.send("First");
    await begun;
    const others = ["Second", "Third"].map((text) => session.send(text, { queueMode: "followup" }));
    open();
    expect((await first.result).reply).toBe("Done 1.");
    expect(await Promise.all(others.map(async ({ result }) => (await result).reply))).toEqual([
      "Done 2.",
      "Done 3.",
    ]);
    expect((await lines("a")).filter((line) => line.startsWith("user"))).toEqual([
      "user: First",
      "user: Second",
      "user: Third",
    ]);
  });

  test("[LIB10] an interrupt ends the turn and is next", async () => {
    const { tool, begun } = gate();
    const { skein, lines } = await withScript((_, index) => (index === 0 ? calling : { text: "Instead." }), {
      tools: [tool],
    });
    const session = skein.session({ sessionId: "a" });
    const first = session.send("First");
    await begun;
    const second = session.send("No, this", { queueMode: "interrupt" });
    await expect(first.result).rejects.toMatchObject({ code: "aborted", state: "aborted" });
    expect((await second.result).reply).toBe("Instead.");
    expect((await lines("a")).slice(0, 2)).toEqual(["user: First", "assistant: (gate)"]);
    expect((await lines("a"))[2]).toContain("[failed]");
    expect((await lines("a")).slice(3)).toEqual(["user: No, this", "assistant: Instead."]);
  });

  test("[LIB11] [LIB30] an abort keeps the text so far, and the session continues", async () => {
    const { skein, lines, until } = await withScript((_, index) =>
      index === 0 ? { text: "I begin to", stall: true } : { text: "Fine." },
    );
    const session = skein.session({ sessionId: "a" });
    const turn = session.send("Go");
    await until("run.delta", ({ delta }) => delta.includes("to"));
    await turn.abort();
    await expect(turn.result).rejects.toMatchObject({ state: "aborted" });
    expect(await lines("a")).toEqual(["user: Go", "assistant: I begin to [aborted]"]);
    expect((await session.send("And?").result).reply).toBe("Fine.");
  });

  test("[LIB12] [LIB31] input queued at the close continues at the next start, and an interrupted turn is resumed", async () => {
    const dir = newFolder();
    const { tool, begun } = gate();
    const first = await withScript([calling], { tools: [tool] }, { dir });
    const turn = first.skein.session({ sessionId: "a" }).send("First");
    const next = first.skein.session({ sessionId: "a" }).send("Second", { queueMode: "followup" });
    await begun;
    await first.skein.close({ graceMs: 0 });
    await expect(turn.result).rejects.toMatchObject({ code: "unavailable" });
    for (const late of [() => first.skein.session().send("Late").result, () => first.skein.runs.list()])
      await expect(late()).rejects.toThrow(
        "This Skein instance was closed. Open a new instance with createSkein; it continues processing accepted input.",
      );
    const again = defineTool({ name: "gate", description: "Waits.", execute: async () => "not again" });
    const second = await withScript(answering(), { tools: [again] }, { dir });
    await second.until("run.ended", ({ runId }) => runId === next.runId);
    expect((await second.skein.runs.get(turn.runId))?.state).toBe("ok");
    const lines = await second.lines("a");
    expect(lines[2]).toContain("interrupted");
    expect(lines).toHaveLength(6);
    expect(lines[4]).toBe("user: Second");
  });
});

describe("several processes", () => {
  test("[LIB29] a run of an agent that a process does not have waits for one that does", async () => {
    const dir = newFolder();
    const bot = defineAgent({ id: "bot", model: "rehearsal/script" });
    const first = await withScript([], {}, { dir, agents: [bot], workers: false });
    const turn = first.skein.session({ agentId: "bot", sessionId: "a" }).send("Hello");
    await first.until("run.queued");
    const stranger = await withScript(answering("No."), {}, { dir });
    await stranger.skein.session({ sessionId: "b" }).send("Hello").result;
    expect((await stranger.skein.runs.get(turn.runId))?.state).toBe("queued");
    const second = await withScript(answering(), {}, { dir, agents: [bot] });
    await second.until("run.ended", ({ runId }) => runId === turn.runId);
    expect((await turn.result).reply).toBe("Yes. 1");
  });
});

describe("closing", () => {
  test("[LIB27] a running answer is finished, and no model is asked again for it", async () => {
    const dir = newFolder();
    const step = { text: "a b c d e f", delayMs: 20 };
    const first = await withScript([step], {}, { dir });
    const turn = first.skein.session({ sessionId: "a" }).send("Go");
    await first.until("run.delta");
    await first.skein.close({ graceMs: 60_000 });
    expect(await turn.result).toMatchObject({ reply: "a b c d e f" });
    expect(first.reported).toEqual([]);
  });

  test("[LIB27] an unfinished turn stops at its last written state, and continues at the next start", async () => {
    const dir = newFolder();
    const echo = defineTool({ name: "gate", description: "Echo.", execute: async () => "echo" });
    const steps = [{ text: "First this", delayMs: 20, calls: [{ name: "gate", id: "g1" }] }];
    const first = await withScript(steps, { tools: [echo] }, { dir });
    const turn = first.skein.session({ sessionId: "a" }).send("Go");
    await first.until("run.delta");
    await first.skein.close({ graceMs: 60_000 });
    const second = await withScript(answering(), { tools: [echo] }, { dir });
    await second.until("run.ended", ({ runId }) => runId === turn.runId);
    expect(second.model.requests).toHaveLength(1);
    expect((await second.lines("a")).filter((line) => line.startsWith("assistant"))).toHaveLength(2);
  });
});

describe("approval", () => {
  const asks = defineTool({
    name: "gate",
    description: "Asks.",
    parameters: Type.Object({ what: Type.String() }),
    approval: ({ what }) => what === "delete",
    execute: async ({ what }) => `did ${what}`,
  });
  const step = (what: string) => ({ calls: [{ name: "gate", arguments: { what } }] });

  test("[LIB13] a tool that asks waits for a yes; a no is a failed result; other tools run at once", async () => {
    const steps = [step("read"), step("delete"), step("delete"), { text: "Done." }];
    const { skein, lines, until } = await withScript(steps, { tools: [asks] });
    const turn = skein.session({ userId: "alice", sessionId: "a" }).send("Clean up");
    const first = await until("approval.requested");
    expect(first).toMatchObject({ toolName: "gate", arguments: { what: "delete" }, userId: "alice" });
    await until("run.waiting");
    expect((await skein.runs.get(turn.runId))?.state).toBe("waiting");
    expect(await skein.approvals.list({}, "bob")).toEqual([]);
    await expect(skein.approvals.resolve(first.approvalId, "approved", "bob", "bob")).rejects.toMatchObject({
      code: "not_found",
    });
    await skein.approvals.resolve(first.approvalId, "approved", "alice", "alice");
    const second = await until("approval.requested", ({ approvalId }) => approvalId !== first.approvalId);
    await skein.approvals.resolve(second.approvalId, "denied");
    const answers: unknown[] = [];
    for await (const event of turn) if (event.type === "approval") answers.push([event.name, event.answer]);
    expect(answers).toEqual([
      ["gate", null],
      ["gate", "approved"],
      ["gate", null],
      ["gate", "denied"],
    ]);
    expect((await turn.result).reply).toBe("Done.");
    const results = (await lines("a", "alice")).filter((line) => line.startsWith("result"));
    expect(results.slice(0, 2)).toEqual(["result: did read", "result: did delete"]);
    expect(results[2]).toMatch(/not approved.*\[failed\]/);
  });

  test("[LIB13] an approval does not apply to a later call, even if the model reuses the call ID", async () => {
    const again = { calls: [{ name: "gate", id: "call_0", arguments: { what: "delete" } }] };
    const { skein, lines } = await withScript([again, again, { text: "Done." }], { tools: [asks] });
    const answers = ["approved", "denied"] as const;
    const asked: string[] = [];
    skein.subscribe((event) => {
      if (event.type !== "approval.requested") return;
      const answer = answers[asked.push(event.approvalId) - 1] ?? "denied";
      void skein.approvals.resolve(event.approvalId, answer);
    });
    await skein.session({ sessionId: "a" }).send("Clean up").result;
    expect(new Set(asked).size).toBe(2);
    const results = (await lines("a")).filter((line) => line.startsWith("result"));
    expect(results).toEqual(["result: did delete", expect.stringMatching(/not approved.*\[failed\]/)]);
  });

  test("[LIB14] two calls of one message wait in parallel, and the slot is free meanwhile", async () => {
    const both = {
      calls: [
        { name: "gate", arguments: { what: "delete" } },
        { name: "gate", arguments: { what: "delete" } },
      ],
    };
    const { skein, until, events } = await withScript(
      (request) =>
        JSON.stringify(request.prompt).includes("Clean")
          ? JSON.stringify(request.prompt).includes("tool-result")
            ? { text: "Done." }
            : both
          : { text: "Quick." },
      { tools: [asks] },
    );
    const turn = skein.session({ sessionId: "a" }).send("Clean up");
    await until(
      "approval.requested",
      ({ approvalId }) =>
        approvalId !==
        (events.find(({ type }) => type === "approval.requested") as { approvalId: string }).approvalId,
    );
    for (const { approvalId } of await skein.approvals.list())
      await skein.approvals.resolve(approvalId, "approved");
    expect((await turn.result).reply).toBe("Done.");
  });
});
