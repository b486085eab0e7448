import type { SessionConfigOption } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import { closeAfterEach, lines, skeinWith } from "../support/acp/opened.ts";

/**
 * Sessions that represent an ACP agent's sessions, with a real Skein instance in a folder and the agent as a real child
 * process.
 */

closeAfterEach();

const configOptions: SessionConfigOption[] = [
  {
    id: "m",
    name: "Model",
    category: "model",
    type: "select",
    currentValue: "small",
    options: [
      { value: "small", name: "Small" },
      { value: "large", name: "Large" },
    ],
  },
  {
    id: "t",
    name: "Thinking",
    category: "thought_level",
    type: "select",
    currentValue: "low",
    options: [
      { value: "low", name: "Low" },
      { value: "high", name: "High" },
    ],
  },
];

describe("a turn of an ACP agent", () => {
  test("[ARU1] its messages, thoughts and actions are written, and its last message is the reply", async () => {
    const acp = await skeinWith({
      script: {
        turns: [
          [
            { think: "Let me see." },
            { say: "I look " },
            { say: "around." },
            {
              update: {
                sessionUpdate: "tool_call",
                toolCallId: "c1",
                title: "List",
                kind: "search",
                rawInput: { pattern: "*" },
              },
            },
            {
              update: {
                sessionUpdate: "tool_call_update",
                toolCallId: "c1",
                status: "completed",
                content: [{ type: "content", content: { type: "text", text: "a.txt" } }],
              },
            },
            { echo: true },
            { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } },
          ],
        ],
      },
    });
    const session = await acp.session();
    const { outcome, usage } = await acp.say(session, "Look around");
    expect(outcome).toMatchObject({ state: "ok", reply: "[Look around]" });
    expect(await lines(acp, session)).toEqual([
      "user: Look around",
      'assistant toolUse: thinking | I look around. | → search {"pattern":"*"}',
      "result search: a.txt",
      "assistant stop: [Look around]",
    ]);
    expect(usage).toMatchObject({ input: 10, output: 5, totalTokens: 15 });
    expect(acp.reports).toEqual([]);
  });

  test("[ARU2] a persistent session keeps its process for the next message; a one-shot run ends it", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ tell: "pid" }], [{ echo: true }, { tell: "pid" }]] },
    });
    const [session, run] = [await acp.session(), await acp.session({}, "run")];
    const first = await acp.say(session, "Who are you?");
    expect(await acp.agentSessionId(session)).toMatch(/^scripted-/);
    expect((await acp.say(session, "And now?")).outcome?.reply).toBe(`[And now?]${first.outcome?.reply}`);
    const once = await acp.say(run, "Who are you?");
    expect(once.outcome?.reply).not.toBe(first.outcome?.reply);
    await acp.untilGone([Number(once.outcome?.reply)]);
    expect(acp.alive).toEqual([Number(first.outcome?.reply)]);
  });

  test("[ARU2] a reset session ends its process and starts a new agent session", async () => {
    const acp = await skeinWith();
    const session = await acp.session();
    await acp.say(session, "Hello");
    expect(acp.alive).toHaveLength(1);
    await acp.skein.store.sessions.reset({ agentId: "twin" }, session.sessionId);
    await acp.untilGone();
    await acp.say(session, "Hello again");
    const [older, newer] = acp.agentSessions;
    expect([older, newer]).toEqual([expect.anything(), expect.anything()]);
  });

  test.each([
    ["resumes", { load: true, resume: true }],
    ["loads", { load: true, resume: false }],
  ])(
    "[ARU3] an agent whose process died while idle %s its session, and nothing is written twice",
    async (_, can) => {
      const acp = await skeinWith({ script: { can, turns: [[{ say: "One." }], [{ say: "Two." }]] } });
      const session = await acp.session();
      await acp.say(session, "First");
      const id = await acp.agentSessionId(session);
      for (const pid of acp.alive) process.kill(pid, "SIGKILL");
      await acp.untilGone();
      expect((await acp.say(session, "Second")).outcome).toMatchObject({ state: "ok", reply: "Two." });
      expect(await acp.agentSessionId(session)).toBe(id);
      expect(acp.started).toHaveLength(2);
      expect(await lines(acp, session)).toEqual([
        "user: First",
        "assistant stop: One.",
        "user: Second",
        "assistant stop: Two.",
      ]);
    },
  );

  test("[ARU3] an agent that can neither load nor resume reports that its context is lost", async () => {
    const acp = await skeinWith({ script: { can: { load: false, resume: false } } });
    const session = await acp.session();
    await acp.say(session, "First");
    for (const pid of acp.alive) process.kill(pid, "SIGKILL");
    await acp.untilGone();
    const { outcome } = await acp.say(session, "Second");
    expect(outcome).toMatchObject({ state: "error", code: "acp_unsupported" });
    expect(outcome?.error).toMatch(/its process has exited and its context is lost.*Spawn it again/);
  });

  test("[ARU3] an earlier session of the agent is continued", async () => {
    const acp = await skeinWith({ script: { turns: [[{ say: "One." }], [{ say: "Two." }]] } });
    const first = await acp.session({}, "run");
    await acp.say(first, "First");
    const id = String(await acp.agentSessionId(first));
    const second = await acp.session({ resumeSessionId: id });
    expect((await acp.say(second, "Second")).outcome?.reply).toBe("Two.");
    expect(await acp.agentSessionId(second)).toBe(id);
    const unknown = await acp.session({ resumeSessionId: "nobody" });
    expect((await acp.say(unknown, "Third")).outcome).toMatchObject({ state: "error", code: "acp_failed" });
  });

  test("[ARU4] the model and thinking level are set before the prompt, or the run ends with the supported values", async () => {
    const acp = await skeinWith({ script: { configOptions, turns: [[{ tell: "config" }]] } });
    const wanted = await acp.session({ model: "LARGE", thinking: "high" });
    expect(JSON.parse((await acp.say(wanted, "Go")).outcome?.reply ?? "")).toEqual({
      values: { m: "large", t: "high" },
      mode: null,
    });
    const unknown = await acp.session({ model: "huge" });
    const { outcome } = await acp.say(unknown, "Go");
    expect(outcome).toMatchObject({ state: "error", code: "acp_unsupported" });
    expect(outcome?.error).toContain("Use one of: small, large");
    await acp.untilGone(acp.started.slice(1));
  });

  test("[ARU12] [ANS2] input that arrives while the agent answers is the next run", async () => {
    const acp = await skeinWith({
      script: {
        turns: [[{ permission: { id: "c1", title: "Wait" } }, { say: "First." }], [{ echo: true }]],
      },
      acp: { permissions: "ask" },
    });
    const session = await acp.session();
    const { runId } = await acp.handle(session).accept("First");
    const approval = await acp.approval();
    const steered = await acp.handle(session).accept("Second", { queueMode: "steer" });
    await acp.skein.approvals.resolve(approval.approvalId, "approved");
    const first = await acp.skein.ended(runId, { timeoutMs: 150_000 });
    expect(first.outcome?.reply).toMatch(/First\.$/);
    const second = await acp.skein.ended(steered.runId, { timeoutMs: 150_000 });
    expect(second).toMatchObject({ mergedInto: null, outcome: { state: "ok", reply: "[Second]" } });
  });

  test("[ARU12] output after the end of a turn is dropped", async () => {
    const acp = await skeinWith({
      script: { turns: [[{ later: "Too late." }, { say: "Done." }], [{ say: "Again." }]] },
    });
    const session = await acp.session();
    await acp.say(session, "First");
    await acp.say(session, "Second");
    const said = await lines(acp, session);
    expect(said.filter((line) => line.startsWith("assistant")).join()).toMatch(
      /^assistant stop: Done\.,assistant stop: /,
    );
    expect(said).toHaveLength(4);
  });

  test("[ARU13] structured output is refused before anything is started", async () => {
    const acp = await skeinWith();
    const session = await acp.session();
    const schema = { type: "object", properties: {} };
    const { outcome } = await acp.say(session, "Go", { schema });
    expect(outcome).toMatchObject({ state: "error", code: "acp_unsupported" });
    expect(acp.started).toEqual([]);
  });

  test("[ARU36] a model or thinking level of one message, or of the session, is refused before anything is started", async () => {
    const acp = await skeinWith();
    const session = await acp.session();
    for (const options of [{ model: "a/b" }, { thinking: "high" }] as const) {
      const { outcome } = await acp.say(session, "Go", options);
      expect(outcome).toMatchObject({ state: "error", code: "acp_unsupported" });
      expect(outcome?.error).toMatch(
        /set once, when it is spawned, but this run requests (?:model a\/b|thinking high)/,
      );
    }
    await acp.skein.store.sessions.patch({ agentId: "twin" }, session.sessionId, { model: "c/d" });
    expect((await acp.say(session, "Go")).outcome?.error).toContain("requests model c/d");
    expect(acp.started).toEqual([]);
    expect(await lines(acp, session)).toEqual(["user: Go", "user: Go", "user: Go"]);
  });
});
