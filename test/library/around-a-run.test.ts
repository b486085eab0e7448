import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Json } from "../../src/entry-store.ts";
import type { Channel } from "../../src/index.ts";
import { defineTool, HookRegistry, HookStop } from "../../src/index.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";

afterEach(closeAll);

const echo = defineTool({ name: "echo", description: "Says it again.", execute: async () => "echo" });

describe("hooks of a run", () => {
  test("[LIB15] are called in order, and their answers count", async () => {
    const hooks = new HookRegistry();
    const called: string[] = [];
    hooks.on("session_start", ({ isNew }) => void called.push(`session_start ${isNew}`) as undefined);
    hooks.on("before_agent_start", () => {
      called.push("before_agent_start");
      return { prependContext: "It is Sunday." };
    });
    hooks.on("before_prompt_build", ({ system }) => {
      called.push("before_prompt_build");
      return { system: `${system} Be brief.` };
    });
    hooks.on(
      "llm_input",
      ({ system, tools }) => void called.push(`llm_input ${system} ${tools}`) as undefined,
    );
    hooks.on(
      "llm_output",
      ({ message }) => void called.push(`llm_output ${message.stopReason}`) as undefined,
    );
    hooks.on("before_tool_call", ({ toolName }) => {
      called.push(`before_tool_call ${toolName}`);
      return { block: "Not on Sundays." };
    });
    hooks.on("agent_end", ({ outcome }) => void called.push(`agent_end ${outcome}`) as undefined);
    const steps = [{ calls: [{ name: "echo" }] }, { text: "Well." }];
    const opened = await withScript(
      steps,
      { tools: [echo], allow: ["echo"], system: "You echo." },
      { hooks },
    );
    await opened.skein.session({ sessionId: "a" }).send("Echo").result;
    await opened.until("run.ended");
    expect(called).toEqual([
      "session_start true",
      "before_agent_start",
      "before_prompt_build",
      "llm_input You echo. Be brief. echo",
      "llm_output toolUse",
      "before_tool_call echo",
      "llm_input You echo. Be brief. echo",
      "llm_output stop",
      "agent_end ok",
    ]);
    const lines = await opened.lines("a");
    expect(lines.slice(0, 2)).toEqual(["skein.context: It is Sunday.", "user: Echo"]);
    expect(lines[3]).toMatch(/Not on Sundays.*\[failed\]/);
    expect(JSON.stringify(opened.model.requests[0]?.prompt)).toContain("It is Sunday.");
  });

  test("[LIB16] a hook that throws is reported and skipped; one that stops ends the run, and the input stays", async () => {
    const hooks = new HookRegistry((_, error) => told.push(String(error)));
    const told: string[] = [];
    hooks.on("before_agent_start", () => {
      throw new Error("broken");
    });
    const { skein, lines } = await withScript(answering(), {}, { hooks });
    expect((await skein.session({ sessionId: "a" }).send("One").result).reply).toContain("Yes.");
    expect(told).toEqual(["Error: broken"]);
    const off = hooks.on("before_prompt_build", () => {
      throw new HookStop("enough");
    });
    await expect(skein.session({ sessionId: "a" }).send("Two").result).rejects.toMatchObject({
      code: "hook_stopped",
      message: "enough",
    });
    off();
    expect((await lines("a")).at(-1)).toBe("user: Two");
    expect((await skein.session({ sessionId: "a" }).send("Three").result).reply).toContain("Yes.");
  });
});

describe("the state of an agent", () => {
  test("[LIB17] is loaded for each run and saved after it, however it ended, and belongs to one session", async () => {
    const dir = newFolder();
    const counter = () => {
      let count = 0;
      return {
        key: "count",
        save: (): Json => ++count,
        load: (value: Json | null) => {
          count = typeof value === "number" ? value : 0;
        },
      };
    };
    const script = (_: unknown, index: number) =>
      index === 1 ? { error: { status: 400, message: "bad" } } : { text: "Yes." };
    const first = await withScript(script, { state: () => [counter()] }, { dir });
    const session = first.skein.session({ sessionId: "a" });
    await session.send("One").result;
    await expect(session.send("Two").result).rejects.toThrow();
    await first.skein.session({ sessionId: "b" }).send("One").result;
    await first.skein.close();
    const second = await withScript(answering(), { state: () => [counter()] }, { dir });
    await second.skein.session({ sessionId: "a" }).send("Three").result;
    const { state } = second.skein.store;
    expect((await state.get({ agentId: "main" }, "a", "count"))?.value).toBe(3);
    expect((await state.get({ agentId: "main" }, "b", "count"))?.value).toBe(1);
  });
});

describe("channels of a run", () => {
  const inbound = { channel: "desk", messageId: "m1", peer: "ann", text: "Hello" };

  test("[LIB18] a message is accepted once, and the reply returns to its sender", async () => {
    const sent: unknown[] = [];
    const desk: Channel = {
      id: "desk",
      deliver: async ({ text, idempotencyKey }, target) => {
        sent.push({ text, idempotencyKey, target });
        return { messageId: "out-1" };
      },
    };
    const { skein, until } = await withScript(answering(), {}, { channels: [desk] });
    const first = await skein.receive({ ...inbound, threadId: "t7" });
    const again = await skein.receive({ ...inbound, threadId: "t7" });
    expect(first.isNew).toBe(true);
    expect(again).toEqual({ ...first, isNew: false });
    await until("outbox.delivered");
    expect(sent).toEqual([
      {
        text: "Yes. 1",
        idempotencyKey: `reply:${first.runId}`,
        target: { channel: "desk", to: "ann", threadId: "t7" },
      },
    ]);
    const [session] = (await skein.store.sessions.list({ userId: "desk:ann" }, {})).sessions;
    expect(session?.meta).toMatchObject({
      channel: "desk",
      delivery: { channel: "desk", to: "ann", threadId: "t7" },
    });
  });

  test("[LIB19] a message that a channel rejects is a dead letter, and the session is notified; it can be retried or dropped", async () => {
    let isDown = true;
    const desk: Channel = {
      id: "desk",
      deliver: async () => {
        if (isDown) throw Object.assign(new Error("gone"), { permanent: true });
        return {};
      },
    };
    const { skein, until, lines } = await withScript(answering(), {}, { channels: [desk] });
    await skein.receive(inbound);
    await until("outbox.dead");
    const [letter] = await skein.outbox({ states: ["dead"] });
    expect(letter).toMatchObject({ state: "dead", target: { channel: "desk", to: "ann" } });
    await until("entry.appended", ({ entry }) => JSON.stringify(entry).includes("skein.outbox"));
    const { sessionId } = letter?.session ?? { sessionId: "" };
    expect((await lines(sessionId, "desk:ann")).at(-1)).toMatch(
      /^skein\.outbox: \[Skein\] A message to ann over desk/,
    );
    isDown = false;
    await expect(skein.settleOutbox(letter?.outboxId ?? "", "retry", "somebody")).rejects.toMatchObject({
      code: "not_found",
    });
    await skein.settleOutbox(letter?.outboxId ?? "", "retry");
    await until("outbox.delivered");
    expect(await skein.outbox({ states: ["delivered"] })).toHaveLength(1);
  });

  test("[LIB20] a session that may not send keeps its reply", async () => {
    const desk: Channel = { id: "desk", deliver: async () => Promise.reject(new Error("never")) };
    const { skein } = await withScript(answering(), {}, { channels: [desk] });
    const key = "agent:main:desk:direct:ann";
    const session = skein.session({ sessionKey: key });
    await session.send("Hello").result;
    const record = await session.record();
    await skein.store.sessions.patch({ agentId: "main" }, record?.sessionId ?? "", { sendPolicy: "deny" });
    await session.send("Hello", { deliverTo: { channel: "desk", to: "ann" } }).result;
    expect(await skein.outbox()).toEqual([]);
  });

  test("[LIB20] a reply to a webhook without an address stays in its session, and is not a dead letter", async () => {
    const dir = newFolder();
    const config = join(dir, "skein.yaml");
    writeFileSync(
      config,
      "channels: { desk: { type: webhook, secret: abcdef } }\nagents: { main: { model: rehearsal/script } }\n",
    );
    const { skein, until } = await withScript(answering(), {}, { dir, config });
    const { runId } = await skein.receive({ channel: "desk", messageId: "m-1", peer: "ann", text: "Hello" });
    await until("run.ended", (event) => event.runId === runId);
    expect((await skein.runs.get(runId))?.state).toBe("ok");
    expect(await skein.outbox()).toEqual([]);
  });
});

describe("the configuration of a run", () => {
  test("[LIB21] tokens beyond the budget end the run, with the numbers", async () => {
    const dir = newFolder();
    writeFileSync(
      join(dir, "skein.yaml"),
      "budget: { tokens: 100 }\nagents: { main: { model: rehearsal/script } }\n",
    );
    const script = (_: unknown, index: number) => ({
      calls: [{ name: "echo", arguments: { index } }],
      usage: { input: 30, output: 10 },
    });
    const loose = defineTool({ name: "echo", description: "Echo.", execute: async () => "echo" });
    const opened = await withScript(script, { tools: [loose] }, { dir, config: join(dir, "skein.yaml") });
    const turn = opened.skein.session({ sessionId: "a" }).send("Go on for ever");
    await expect(turn.result).rejects.toMatchObject({ code: "budget_exceeded" });
    const run = await opened.skein.runs.get(turn.runId);
    expect(await opened.skein.budget(run?.root.rootId ?? "")).toMatchObject({ tokens: 120, runs: 1 });
    expect(opened.model.requests).toHaveLength(3);
  });

  test("[LIB21] a summary beyond the budget ends the run too", async () => {
    const dir = newFolder();
    const config = { budget: { tokens: 100_000 }, agents: { main: { model: "rehearsal/script" } } };
    writeFileSync(join(dir, "skein.json"), JSON.stringify(config));
    const steps = [
      { text: "One.", usage: { input: 10, output: 10 } },
      { text: "Two.", usage: { input: 10, output: 10 } },
      { error: { status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum" } },
      { text: "## Goal\nTo count.", usage: { input: 100_000, output: 10 } },
    ];
    const opened = await withScript(
      (_, index) => steps[index] ?? { text: "Too far.", usage: { input: 1, output: 1 } },
      {},
      { dir, config: join(dir, "skein.json") },
    );
    const session = opened.skein.session({ sessionId: "a" });
    for (const text of ["One", "Two"]) await session.send(`${text} ${"word ".repeat(30_000)}`).result;
    await expect(session.send("Three").result).rejects.toMatchObject({ code: "budget_exceeded" });
    expect(opened.reported).toEqual([]);
    expect(opened.model.requests).toHaveLength(4);
  });

  test("[LIB22] a key moves to a new session by its reset rule, with the input that triggered it", async () => {
    const dir = newFolder();
    writeFileSync(
      join(dir, "skein.yaml"),
      "session: { reset: { mode: idle, minutes: 30 } }\nagents: { main: { model: rehearsal/script } }\n",
    );
    let now = Date.parse("2026-01-05T10:00:00Z");
    const clock = { now: () => now };
    const { skein, lines, events } = await withScript(
      answering(),
      {},
      { dir, config: join(dir, "skein.yaml"), clock },
    );
    const first = await skein.session({}).send("Monday").result;
    const second = await skein.session({}).send("Still").result;
    expect(second.sessionId).toBe(first.sessionId);
    now += 31 * 60_000;
    const turn = skein.session({}).send("Later");
    const third = await turn.result;
    const shown = [];
    for await (const { type } of turn) if (type === "entry") shown.push(type);
    expect(shown).toHaveLength(2);
    expect(third.sessionKey).toBe("agent:main:main");
    expect(third.sessionId).not.toBe(first.sessionId);
    expect(await lines(third.sessionId)).toEqual(["user: Later", "assistant: Yes. 3"]);
    expect(await lines(first.sessionId)).toHaveLength(4);
    const { sessionId, sessionKey } = first;
    const told = { sessionId, sessionKey, freshSessionId: third.sessionId };
    expect(events.filter(({ type }) => type === "session.reset")).toMatchObject([told]);
  });

  test("[LIB23] [MCT1] tools of an MCP server are available under the server's name, and a server that fails to start is skipped", async () => {
    const dir = newFolder();
    const server = join(import.meta.dirname, "../support/mcp-stdio.ts");
    const config = {
      agents: { main: { model: "rehearsal/script" } },
      mcpServers: {
        local: { command: process.execPath, args: [server] },
        absent: { command: join(dir, "no-such-program") },
      },
    };
    writeFileSync(join(dir, "skein.json"), JSON.stringify(config));
    const { skein, model, reported } = await withScript(
      answering(),
      {},
      { dir, config: join(dir, "skein.json") },
    );
    await skein.session({ sessionId: "a" }).send("Hello").result;
    const offered = (model.requests[0]?.tools ?? []).map(({ name }) => name);
    const ours = (await skein.tools()).map(({ name }) => name);
    const names = offered.filter((name) => !ours.includes(name));
    expect(names.length).toBeGreaterThan(0);
    expect(names.every((name) => name.startsWith("local__"))).toBe(true);
    expect(reported.map(String).join("\n")).toContain("absent");
  });

  test("[LIB23] a server without any tool allowed for the agent or the run is not started", async () => {
    const dir = newFolder();
    const absent = { command: join(dir, "no-such-program") };
    const config = {
      agents: { main: { model: "rehearsal/script", tools: { deny: ["group:mcp:one"] } } },
      mcpServers: { one: absent, two: absent },
    };
    writeFileSync(join(dir, "skein.json"), JSON.stringify(config));
    const { skein, reported } = await withScript(
      answering(),
      {},
      { dir, config: join(dir, "skein.json"), agents: [] },
    );
    const session = skein.session({ sessionId: "a" });
    await session.send("Hello", { tools: ["one__*"] }).result;
    expect(reported).toEqual([]);
    await session.send("Hello").result;
    expect(reported.map(String).join()).toContain('"two"');
    expect(reported.map(String).join()).not.toContain('"one"');
  });

  test("[LIB23] an entry of allow that matches no tool is reported once", async () => {
    const dir = newFolder();
    const config = {
      agents: { main: { model: "rehearsal/script", tools: { allow: ["ehco", "one__say"] } } },
      mcpServers: { one: { command: join(dir, "no-such-program") } },
    };
    writeFileSync(join(dir, "skein.json"), JSON.stringify(config));
    const { skein, reported } = await withScript(
      answering(),
      {},
      { dir, config: join(dir, "skein.json"), agents: [] },
    );
    const session = skein.session({ sessionId: "a" });
    for (const text of ["One", "Two"]) await session.send(text).result;
    const notes = reported.map(String).filter((note) => note.includes("matches no tool"));
    expect(notes).toEqual(['Error: The entry "ehco" in the allow list of agent main matches no tool.']);
  });

  test("[LIB24] with redaction on write no secret reaches the disk", async () => {
    const dir = newFolder();
    writeFileSync(
      join(dir, "skein.yaml"),
      "redaction: { onWrite: true }\nagents: { main: { model: rehearsal/script } }\n",
    );
    const secret = `ghp_${"a1B2".repeat(9)}`;
    const { skein, lines } = await withScript(answering(), {}, { dir, config: join(dir, "skein.yaml") });
    await skein.session({ sessionId: "a" }).send(`My token is ${secret}`).result;
    expect((await lines("a")).join("\n")).not.toContain(secret);
    expect((await lines("a"))[0]).toContain("user: My token is ghp_a1");
  });
});

describe("watching a run", () => {
  test.each([{}, { dir: true }])("[LIB26] a session is reported as archived once: %j", async ({ dir }) => {
    const { skein, events } = await withScript(answering(), {}, dir === true ? { dir: newFolder() } : {});
    await skein.session({ sessionId: "a" }).send("Hello").result;
    const { sessions } = skein.store;
    const changes = [{ archived: true }, { channel: "desk" }, { archived: null }];
    const from = events.length;
    for (const change of changes) await sessions.patch({ agentId: "main" }, "a", change);
    const told = events.slice(from).filter(({ type }) => type.startsWith("session."));
    expect(told.map(({ type }) => type)).toEqual(["session.archived", "session.updated", "session.updated"]);
  });

  test("[LIB25] metrics are available on request", async () => {
    const { skein, until } = await withScript(answering(), {}, { metrics: true });
    await skein.session({ sessionId: "a" }).send("Hello").result;
    await until("run.ended");
    const { contentType, body } = (await skein.metrics()) ?? { contentType: "", body: "" };
    expect(contentType).toContain("text/plain");
    expect(body).toMatch(/skein_runs_total\{[^}]*state="ok"[^}]*\} 1/);
    expect(body).toMatch(/skein_model_calls_total\{[^}]*model="script"[^}]*\} 1/);
    const without = await withScript(answering());
    expect(await without.skein.metrics()).toBeNull();
  });

  test("[LIB26] a log names session and run, and contains no secret", async () => {
    const dir = newFolder();
    const file = join(dir, "skein.log");
    const secret = "our-very-own-secret-value";
    const config = {
      agents: { main: { model: "rehearsal/script" } },
      logging: { level: "debug", file },
      models: { providers: { local: { apiKey: secret, baseUrl: "http://127.0.0.1:1" } } },
    };
    writeFileSync(join(dir, "skein.json"), JSON.stringify(config));
    const token = `ghp_${"a1B2".repeat(9)}`;
    const script = [{ error: { status: 400, message: `bad key ${secret} and ${token}` } }];
    const { skein } = await withScript(script, {}, { dir, config: join(dir, "skein.json") });
    const turn = skein.session({ userId: "alice", sessionId: "a" }).send("Hello");
    await expect(turn.result).rejects.toThrow();
    await skein.close();
    const text = readFileSync(file, "utf8");
    expect(text).toContain(turn.runId);
    expect(text).toContain('"sessionId":"a"');
    expect(text).toContain("bad key");
    expect(text).not.toContain(secret);
    expect(text).not.toContain(token);
  });
});

describe("the limits of an agent", () => {
  test("[LIB28] apply to its runs and answers, unless the message overrides them", async () => {
    const limits = { runTimeoutSeconds: 60, maxOutputTokens: 77 };
    const { skein, model } = await withScript([{ text: "One." }, { text: "Two." }], limits);
    const session = skein.session({ sessionId: "limits" });
    const timeOf = async (runId: string) => {
      const run = await skein.runs.get(runId);
      return (run?.deadline ?? 0) - (run?.startedAt ?? 0);
    };
    const one = await session.send("One").result;
    const two = await session.send("Two", { runTimeoutSeconds: 30 }).result;
    expect([await timeOf(one.runId), await timeOf(two.runId)]).toEqual([60_000, 30_000]);
    expect(model.requests.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([77, 77]);
  });
});
