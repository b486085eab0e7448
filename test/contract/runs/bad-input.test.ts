import Type from "typebox";
import { describe, expect, test } from "vitest";
import type { SendOptions } from "../../../src/index.ts";
import { defineTool, HookRegistry } from "../../../src/index.ts";
import type { RunSkeinOptions } from "../../support/run-skein.ts";
import { brief, messagesOf, openRuns, pairingProblems } from "../../support/run-skein.ts";

const where = { sessionId: "s" };

/** A turn that must fail, followed by one that succeeds. */
async function sent(options: RunSkeinOptions, send: SendOptions = {}) {
  const open = await openRuns(options);
  const error = await open.skein
    .session(where)
    .send("Please", send)
    .result.then(
      () => null,
      (thrown: unknown) => thrown as { code: string; message: string },
    );
  const said = (await messagesOf(open.skein, "s")).map(brief);
  expect(said[0]).toBe("user: Please");
  return { open, error, said };
}

async function expectUsable(open: Awaited<ReturnType<typeof openRuns>>): Promise<void> {
  const { reply } = await open.skein.session(where).send("Still there?").result;
  expect(reply).toBe("Here.");
  const messages = await messagesOf(open.skein, "s");
  expect(pairingProblems(messages)).toEqual([]);
  expect(messages.filter((message) => brief(message) === "user: Please")).toHaveLength(1);
  await open.skein.close({ graceMs: 0 });
}

const called = (name: string, args: Record<string, string> = {}) => [
  { calls: [{ name, arguments: args }] },
  { text: "So it went." },
  { text: "Here." },
];

describe("requests that must fail", () => {
  test.each([["no-model"], ["nobody/knows"]])("[KIL6] the model %s", async (model) => {
    const open = await openRuns({ script: [{ text: "Here." }] });
    const refused = open.skein.session(where).send("Please", { model }).result;
    await expect(refused).rejects.toThrow(model.split("/")[0]);
    expect(await messagesOf(open.skein, "s")).toEqual([]);
    await open.skein.session(where).send("Please").result;
    await open.skein.close({ graceMs: 0 });
  });

  test("[KIL6] a model whose key is missing", async () => {
    const keyless = await sent({ script: [{ text: "Here." }] }, { model: "anthropic/claude-sonnet-4-5" });
    expect(keyless.error?.message).toMatch(/key/i);
    const [kept] = await messagesOf(keyless.open.skein, "s");
    expect(kept).toMatchObject({ provenance: { kind: "external_user" } });
    await expectUsable(keyless.open);
  });

  test("[KIL6] an agent that is not configured", async () => {
    const open = await openRuns({ script: [{ text: "Here." }] });
    const other = open.skein.session({ agentId: "stranger", sessionId: "t" });
    const error = await other.send("Please").result.catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/stranger/);
    expect(await open.skein.store.sessions.get({ agentId: "stranger" }, "t")).toBeNull();
    await open.skein.session(where).send("Please").result;
    await open.skein.close({ graceMs: 0 });
  });

  test("[KIL6] a tool that throws, invalid arguments, and a missing tool", async () => {
    const tools = [
      defineTool({
        name: "fails",
        description: "Fails.",
        parameters: Type.Object({ n: Type.Number() }),
        execute: () => {
          throw new Error("the pump is broken");
        },
      }),
    ];
    const misfit = await sent({ script: called("fails", { n: "seven" }), tools });
    expect(misfit.error).toBeNull();
    expect(misfit.said[2]).toMatch(/are invalid.*n/s);
    await expectUsable(misfit.open);
    const missing = await sent({ script: called("absent"), tools });
    expect(missing.said[2]).toMatch(/no tool "absent".*fails/s);
    await expectUsable(missing.open);
    const script = [
      { calls: [{ name: "fails", arguments: { n: 7 } }] },
      { text: "So it went." },
      { text: "Here." },
    ];
    const thrown = await sent({ script, tools });
    expect(thrown.said[2]).toMatch(/the pump is broken/);
    await expectUsable(thrown.open);
  });

  test("[KIL6] a tool that returns 100 MB: the result is shortened, and the whole is kept", async () => {
    const tools = [
      defineTool({ name: "flood", description: "Floods.", execute: () => "x".repeat(100_000_000) }),
    ];
    const { open, error, said } = await sent({ script: called("flood"), tools });
    expect(error).toBeNull();
    expect(said[2]?.length).toBeLessThan(500_000);
    expect(said[2]).toMatch(/stored as blob/);
    await expectUsable(open);
  });

  test("[KIL6] a tool that never returns: the run ends at its timeout", async () => {
    const tools = [
      defineTool({ name: "never", description: "Never.", execute: () => new Promise(() => undefined) }),
    ];
    const script = [{ calls: [{ name: "never" }] }, { text: "Here." }];
    const { open, error } = await sent({ script, tools }, { runTimeoutSeconds: 1 });
    expect(error).toMatchObject({ code: "timeout", state: "timeout" });
    await expectUsable(open);
  });

  test("[KIL6] a hook that throws is reported, and does not end the turn", async () => {
    const told: unknown[] = [];
    for (const name of [
      "session_start",
      "before_agent_start",
      "before_tool_call",
      "llm_output",
      "agent_end",
    ] as const) {
      const hooks = new HookRegistry((hook, error) => told.push([hook, String(error)]));
      hooks.on(name, () => {
        throw new Error(`no ${name}`);
      });
      const tools = [defineTool({ name: "works", description: "Works.", execute: () => "worked" })];
      const { open, said } = await sent({ script: called("works"), tools, hooks });
      expect(said[0]).toBe("user: Please");
      expect(told.pop()).toEqual([name, `Error: no ${name}`]);
      await expectUsable(open);
    }
  });

  test("[LIB14] two calls of one message that both wait for an approval", async () => {
    const ask = defineTool({ name: "ask", description: "Asks.", approval: true, execute: () => "done" });
    const script = [{ calls: [{ name: "ask" }, { name: "ask" }] }, { text: "Both." }];
    const open = await openRuns({ script, tools: [ask] });
    open.skein.subscribe((event) => {
      if (event.type === "approval.requested")
        void open.skein.approvals.resolve(event.approvalId, "approved");
    });
    expect((await open.skein.session(where).send("Ask twice").result).reply).toBe("Both.");
    const said = (await messagesOf(open.skein, "s")).map(brief);
    expect(said.slice(2, 4)).toEqual(["toolResult: done", "toolResult: done"]);
    await open.skein.close({ graceMs: 0 });
  });
});
