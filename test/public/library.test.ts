import { readFileSync } from "node:fs";
import { generateText, isStepCount } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import { createStore, guardedAppend } from "../../src/entry-store.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import type { ConfigInput, ErrorCode } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool, SkeinError, sessionTools } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { connected } from "../support/mcp-client.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const closing: { close(options?: { graceMs?: number }): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of closing.splice(0)) await each.close({ graceMs: 0 });
  await closeAll();
});

async function open(options: Parameters<typeof createSkein>[0]) {
  const skein = await createSkein({ env: {}, quiet: true, ...options });
  closing.push(skein);
  return skein;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

const agents = [defineAgent({ id: "main", model: "rehearsal/basic" })];

describe("errors", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \| (.+?) \| (.+?) \|$/gm)].map(
    ([, code = "", status = "", text = "", remedy = ""]) => ({ code, status: Number(status), text, remedy }),
  );

  test("[ERR1] are documented with a code, a status and a remedy", () => {
    expect(rows.length).toBeGreaterThan(40);
    for (const { status, text, remedy } of rows) {
      expect(status).toBeGreaterThanOrEqual(400);
      expect([text, remedy]).toEqual([expect.stringMatching(/\.$/), expect.stringMatching(/\.$/)]);
    }
  });

  test.each(rows)("[ERR1] $code has its documented status and message", ({ code, status, text, remedy }) => {
    const fields = [...`${text} ${remedy}`.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => [
      name,
      `<${name}>`,
    ]);
    const fill = (template: string) => template.replaceAll(/\{(\w+)\}/g, "<$1>");
    const error = new SkeinError(code as ErrorCode, Object.fromEntries(fields));
    expect(error).toMatchObject({ code, status, message: `${fill(text)} ${fill(remedy)}` });
  });

  test("[ERR1] of a call say what to do next", async () => {
    const skein = await open({ memory: true, config: null, agents });
    await expect(skein.session({ sessionId: "a b" }).send("Hello").result).rejects.toMatchObject({
      code: "invalid_session_id",
      message: expect.stringMatching(
        /^Session ID "a b" is not valid: .+ Use up to 128 letters, digits, .+\.$/,
      ),
    });
  });
});

describe("createSkein({ config })", () => {
  test("[LBR1] accepts the agents of a skein.yaml as an object", async () => {
    const config: ConfigInput = {
      agents: { desk: { model: "rehearsal/basic", system: "You sell tickets." } },
    };
    const skein = await open({ dir: newFolder(), config });
    expect((await skein.agents()).map(({ id }) => id)).toEqual(["desk"]);
    const { reply } = await skein.session({ agentId: "desk" }).send("repeat tickets").result;
    expect(reply).toBe("tickets");
  });

  test("[LBR1] the environment overrides the object as it overrides a file", async () => {
    const config: ConfigInput = { agents: { desk: { model: "rehearsal/basic" } } };
    const skein = await open({ memory: true, config, env: { SKEIN_AGENTS__DESK__MODEL: "rehearsal/other" } });
    expect((await skein.models()).map(({ model }) => model)).toContain("rehearsal/other");
  });

  test("[LBR2] refuses values that a file cannot contain", async () => {
    const config = { agents: { main: { system: () => "You plan." } } } as unknown as ConfigInput;
    await expect(createSkein({ memory: true, env: {}, config })).rejects.toMatchObject({
      code: "invalid_config",
    });
  });
});

describe.each([
  ["in memory", () => ({ memory: true })],
  ["in a folder", () => ({ dir: newFolder() })],
])("the services of a Skein %s", (_, where) => {
  async function talked() {
    const skein = await open({ ...where(), config: null, agents });
    const session = skein.session({ userId: "ann", sessionId: "trip" });
    await session.send("repeat the train leaves at nine").result;
    return { skein, session };
  }

  test("[LBR3] sessions.create, list and get", async () => {
    const { skein } = await talked();
    const made = await skein.sessions.create({ userId: "ann", sessionId: "hotel", label: "Hotel" });
    expect(made).toMatchObject({ sessionId: "hotel", label: "Hotel" });
    const { sessions } = await skein.sessions.list({ userId: "ann" });
    expect(sessions.map(({ sessionId }) => sessionId).toSorted()).toEqual(["hotel", "trip"]);
    expect((await skein.sessions.list()).sessions).toEqual([]);
    expect(await skein.sessions.get({ key: "Hotel", userId: "ann" })).toMatchObject({ key: made.key });
    await expect(skein.sessions.get({ key: "Hotel" })).rejects.toMatchObject({ code: "not_found" });
    await expect(skein.sessions.create({ userId: "ann", sessionId: "hotel" })).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test("[LBR3] sessions.history and session.history", async () => {
    const { skein, session } = await talked();
    const page = await skein.sessions.history({ sessionKey: session.key, userId: "ann" });
    expect(page.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(await session.history()).toEqual(page);
    expect((await session.history({ limit: 1 })).messages).toEqual(page.messages.slice(1));
    await expect(skein.session({ sessionId: "nowhere" }).history()).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("[LBR3] sessions.search", async () => {
    const { skein } = await talked();
    const { hits } = await skein.sessions.search({ query: "train", userId: "ann" });
    expect(new Set(hits.map(({ sessionId }) => sessionId))).toEqual(new Set(["trip"]));
    expect((await skein.sessions.search({ query: "train", userId: "bob" })).hits).toEqual([]);
  });

  test("[LBR4] session.branch, fork and label", async () => {
    const { skein, session } = await talked();
    const [asked] = (await session.history()).messages;
    expect(await session.branch(asked?.id ?? null)).toMatchObject({ leafId: asked?.id });
    expect((await session.history()).messages).toHaveLength(1);
    const fork = await session.fork({ sessionId: "copy", label: "Copy" });
    expect(fork).toMatchObject({ sessionId: "copy", forkedFrom: { sessionId: "trip", entryId: asked?.id } });
    expect((await skein.session({ userId: "ann", sessionKey: fork.key }).history()).messages).toHaveLength(1);
    expect(await session.label("Journey")).toMatchObject({ label: "Journey" });
    expect(await skein.sessions.get({ key: "Journey", userId: "ann" })).toMatchObject({ sessionId: "trip" });
    expect(await session.label(null)).not.toHaveProperty("label");
  });

  test("[LBR4] session.compact and reset", async () => {
    const { session, skein } = await talked();
    expect(await session.compact()).toMatchObject({ done: false });
    const { key, previous } = await session.reset();
    expect(key).toBe(session.key);
    const old = await skein.sessions.history({ sessionKey: previous.key, userId: "ann" });
    expect(old.messages).toHaveLength(2);
    expect((await skein.sessions.history({ sessionKey: key, userId: "ann" })).messages).toEqual([]);
  });

  test("[LIB6] parameters are checked as the gateway checks them", async () => {
    const { skein } = await talked();
    await expect(skein.sessions.list({ limit: 0 })).rejects.toThrow("limit");
    await skein.close();
    await expect(skein.sessions.list()).rejects.toMatchObject({ code: "unavailable" });
    await expect(skein.runs.list()).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("the services of runs and approvals", () => {
  test("[LIB7] runs.list, get and abort", async () => {
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      execute: (_, { signal }) => aborted(signal),
    });
    const { skein, until } = await withScript([{ calls: [{ name: "wait" }] }], { tools: [wait] });
    const turn = skein.session({ userId: "ann" }).send("Hello");
    turn.result.catch(() => undefined);
    await until("run.tool");
    expect((await skein.runs.list({}, "ann")).map(({ runId }) => runId)).toEqual([turn.runId]);
    expect(await skein.runs.list({}, "bob")).toEqual([]);
    expect(await skein.runs.get(turn.runId, "bob")).toBeNull();
    await expect(skein.runs.abort(turn.runId, "bob")).rejects.toMatchObject({ code: "not_found" });
    await skein.runs.abort(turn.runId, "ann", "Changed plans");
    await until("run.ended");
    expect(await skein.runs.get(turn.runId, "ann")).toMatchObject({ state: "aborted" });
  });

  test("[LIB7] runs.retry refuses runs that were not lost", async () => {
    const { skein } = await withScript([{ text: "Hello." }]);
    const turn = skein.session().send("Hello");
    await turn.result;
    await expect(skein.runs.retry(turn.runId)).rejects.toMatchObject({ code: "conflict" });
    await expect(skein.runs.retry("no-such-run")).rejects.toMatchObject({ code: "not_found" });
  });

  test("[LIB7] approvals.list and resolve", async () => {
    const remove = defineTool({
      name: "remove",
      description: "Removes.",
      approval: true,
      execute: () => "ok",
    });
    const { skein, until } = await withScript([{ calls: [{ name: "remove" }] }, { text: "Done." }], {
      tools: [remove],
    });
    const turn = skein.session({ userId: "ann" }).send("Remove it");
    const { approvalId } = await until("approval.requested");
    expect((await skein.approvals.list({}, "ann")).map((each) => each.approvalId)).toEqual([approvalId]);
    expect(await skein.approvals.list({}, "bob")).toEqual([]);
    await expect(skein.approvals.resolve(approvalId, "approved", null, "bob")).rejects.toMatchObject({
      code: "not_found",
    });
    await skein.approvals.resolve(approvalId, "approved", "policy", "ann");
    expect((await turn.result).reply).toBe("Done.");
    expect(await skein.approvals.list()).toEqual([]);
    expect(await skein.approvals.list({ open: false })).toMatchObject([{ answer: "approved" }]);
  });
});

describe("a repeated idempotency key", () => {
  const conflict = { code: "idempotency_conflict" };

  test("[LBR7] with another message, session or option is refused by the library", async () => {
    const { skein } = await withScript(answering());
    const session = skein.session({ sessionId: "trip" });
    const first = await session.accept("Hello", { idempotencyKey: "one", model: "rehearsal/script" });
    const again = await session.accept("Hello", { idempotencyKey: "one", model: "rehearsal/script" });
    expect(again.runId).toBe(first.runId);
    const key = { idempotencyKey: "one" };
    await expect(session.accept("Goodbye", { ...key, model: "rehearsal/script" })).rejects.toMatchObject(
      conflict,
    );
    await expect(session.accept("Hello", key)).rejects.toThrow("a different model");
    const interrupting = { ...key, model: "rehearsal/script", queueMode: "interrupt" } as const;
    await expect(session.accept("Hello", interrupting)).rejects.toThrow("a different queueMode");
    const other = skein.session({ sessionId: "hotel" });
    await expect(other.accept("Hello", { ...key, model: "rehearsal/script" })).rejects.toThrow(
      "a different session",
    );
    await expect(session.send("Goodbye", key).result).rejects.toMatchObject(conflict);
    await session.note("I called them.", { idempotencyKey: "two" });
    await expect(session.note("I wrote to them.", { idempotencyKey: "two" })).rejects.toMatchObject(conflict);
  });

  test("is never confused with a key that the database stores in the same way", async () => {
    const { skein } = await withScript(answering());
    const session = skein.session({ sessionId: "trip" });
    const [half, replaced] = ["k\ud800", "k\ufffd"];
    const invalid = { code: "invalid_arguments" };
    await session.accept("Hello", { idempotencyKey: replaced });
    await expect(session.accept("Hello", { idempotencyKey: half })).rejects.toMatchObject(invalid);
    await expect(session.note("Hello", { idempotencyKey: half })).rejects.toMatchObject(invalid);
    const message = { channel: "desk", peer: "17", text: "Hello", messageId: half };
    await expect(skein.receive(message)).rejects.toMatchObject(invalid);
  });

  test("[LBR7] with another image is refused, however large the image is", async () => {
    const { skein } = await withScript(answering());
    const session = skein.session();
    const image = (fill: number) => [
      { data: Buffer.alloc(300_000, fill).toString("base64"), mimeType: "image/png" },
    ];
    const first = await session.accept("Look", { idempotencyKey: "one", images: image(1) });
    const again = await session.accept("Look", { idempotencyKey: "one", images: image(1) });
    expect(again.runId).toBe(first.runId);
    const other = session.accept("Look", { idempotencyKey: "one", images: image(2) });
    await expect(other).rejects.toMatchObject(conflict);
  });

  test("[LBR7] with the same large image as a data URL finds the run", async () => {
    const { skein } = await withScript(answering());
    const session = skein.session();
    const mimeType = "image/png";
    const data = `data:image/png;base64,${Buffer.alloc(300_000, 1).toString("base64")}`;
    const send = (given: string) =>
      session.accept("Look", { idempotencyKey: "url", images: [{ data: given, mimeType }] });
    const { runId } = await send(data);
    expect(await send(data)).toMatchObject({ runId });
    await expect(send(`${data.slice(0, -4)}AAAA`)).rejects.toMatchObject(conflict);
  });

  test("[LBR7] with another message or task is refused by the session tools", async () => {
    const { skein } = await withScript(answering(), { visibility: "agent" });
    await skein.session({ sessionId: "hotel" }).open();
    const call = async (name: string, args: object) =>
      (await skein.callTool(name, args, { sessionKey: "agent:main:main", idempotencyKey: name })).result;
    const to = { sessionKey: "agent:main:session:hotel", timeoutSeconds: 0 };
    const sent = await call("sessions_send", { ...to, message: "Hello" });
    expect(await call("sessions_send", { ...to, message: "Hello" })).toMatchObject({ runId: sent.runId });
    expect(await call("sessions_send", { ...to, message: "Goodbye" })).toMatchObject(conflict);
    const note = { ...to, message: "Hello", role: "assistant" };
    expect(await call("sessions_send", note)).toMatchObject(conflict);
    await skein.session({ sessionId: "flight" }).open();
    const other = { ...to, sessionKey: "agent:main:session:flight", message: "Hello" };
    expect(await call("sessions_send", other)).toMatchObject(conflict);
    const spawned = await call("sessions_spawn", { task: "Count", background: true });
    expect(await call("sessions_spawn", { task: "Count", background: true })).toMatchObject({
      runId: spawned.runId,
    });
    expect(await call("sessions_spawn", { task: "Add", background: true })).toMatchObject(conflict);
  });

  test("[LBR7] with another message is refused by a channel", async () => {
    const { skein } = await withScript(answering());
    const message = { channel: "desk", messageId: "m1", peer: "17" };
    const first = await skein.receive({ ...message, text: "Hello" });
    expect(await skein.receive({ ...message, text: "Hello" })).toEqual({ ...first, isNew: false });
    await expect(skein.receive({ ...message, text: "Goodbye" })).rejects.toMatchObject(conflict);
  });

  test("[LBR7] with another body is 409 over HTTP, WebSocket and MCP, and exits 1 in the CLI", async () => {
    const gateway = await wholeGateway({ config: "tools: { sessions: { visibility: agent } }\n" });
    closing.push(gateway);
    const { rpc, root, url, admin } = gateway;
    const idempotencyKey = "one";
    const requests: readonly (readonly [string, object, object])[] = [
      ["chat.send", { sessionKey: "main", message: "repeat a" }, { message: "repeat b" }],
      ["sessions.send", { key: "main", message: "repeat a", timeoutMs: 0 }, { model: "rehearsal/other" }],
      ["agent", { sessionKey: "main", message: "repeat a", thinking: "low" }, { thinking: "high" }],
      ["chat.inject", { sessionKey: "main", message: "A note." }, { message: "Another note." }],
    ];
    for (const [method, params, change] of requests) {
      const given = { ...params, idempotencyKey: method };
      const first = await rpc(method, given);
      expect(first, JSON.stringify(first)).toMatchObject({ status: 200 });
      expect(await rpc(method, given)).toMatchObject({ body: { runId: runIdIn(first.body) } });
      const refused = await rpc(method, { ...given, ...change });
      expect(refused).toMatchObject({ status: 409, body: { error: conflict } });
    }
    const client = await gateway.client();
    const other = client.call("chat.send", { sessionKey: "main", message: "x", idempotencyKey: "chat.send" });
    await expect(other).rejects.toMatchObject(conflict);
    const args = {
      name: "sessions_send",
      arguments: { sessionKey: "main", message: "Hello", timeoutSeconds: 0 },
    };
    const meta = { "skein/idempotencyKey": idempotencyKey };
    const mcp = await connected({ url: `${url}/mcp` }, "2025-11-25", { token: admin });
    await mcp.callTool({ ...args, _meta: meta });
    const changed = { ...args, arguments: { ...args.arguments, message: "Goodbye" }, _meta: meta };
    expect((await mcp.callTool(changed)).structuredContent).toMatchObject(conflict);
    await mcp.close();
    const send = (text: string) => run(["send", "main", text, "--key", "k", "--dir", root], { cwd: root });
    expect(await send("repeat a")).toMatchObject({ exit: 0 });
    expect(await send("repeat a")).toMatchObject({ exit: 0 });
    expect(await send("repeat b")).toMatchObject({
      exit: 1,
      err: expect.stringContaining("idempotency key was already used for a different message"),
    });
  });

  test("[LIB4] with the same request finds the run, whatever happened to its session", async () => {
    const gateway = await wholeGateway();
    closing.push(gateway);
    const request = { sessionKey: "agent:main:session:trip", message: "repeat a", idempotencyKey: "one" };
    const first = await gateway.rpc("chat.send", request);
    await gateway.rpc("agent.wait", { runId: runIdIn(first.body) });
    await gateway.rpc("sessions.delete", { key: request.sessionKey });
    expect(await gateway.rpc("chat.send", request)).toMatchObject({ body: { runId: runIdIn(first.body) } });
  });
});

function runIdIn(body: unknown): string {
  return (body as { readonly runId: string }).runId;
}

describe("your own agent loop", () => {
  test("[LBR9] session.append writes AI SDK messages through the guard", async () => {
    const { skein, lines } = await withScript(answering());
    const session = skein.session({ sessionId: "trip" });
    const call = { type: "tool-call", toolCallId: "c1", toolName: "weather", input: { city: "Kyoto" } };
    const output = { type: "text", value: "Sunny" };
    const done = await session.append([
      { role: "system", content: "You plan journeys." },
      { role: "user", content: [{ type: "text", text: "Weather?" }] },
      { role: "assistant", content: [{ type: "text", text: "I look." }, call] },
      { role: "tool", content: [{ type: "tool-result", toolCallId: "c1", toolName: "weather", output }] },
      { role: "assistant", content: "It is sunny." },
    ]);
    expect(done.refused).toEqual([]);
    expect(await lines("trip")).toEqual([
      "skein.system: You plan journeys.",
      "user: Weather?",
      "assistant: I look. (weather)",
      "result: Sunny",
      "assistant: It is sunny.",
    ]);
    expect(done.entries.map(({ id }) => id)).toHaveLength(5);
  });

  test("[LBR9] session.append closes open calls and refuses results that answer none", async () => {
    const { skein, lines } = await withScript(answering());
    const session = skein.session({ sessionId: "trip" });
    const call = { type: "tool-call", toolCallId: "c1", toolName: "weather", input: {} };
    const output = { type: "text", value: "Sunny" };
    const stray = { type: "tool-result", toolCallId: "c9", toolName: "weather", output };
    const done = await session.append([
      { role: "user", content: "Weather?" },
      { role: "assistant", content: [call] },
      { role: "tool", content: [stray] },
      { role: "user", content: "Hello?" },
    ]);
    expect(done.refused).toEqual(["no pending call has the ID c9"]);
    expect(done.notes).toMatchObject([{ kind: "synthetic_result" }]);
    expect((await lines("trip")).at(-1)).toBe("user: Hello?");
    expect((await lines("trip")).at(-2)).toContain("[failed]");
  });

  test("[LBR9] session.append accepts messages in the library's own format, and refuses while a run is active", async () => {
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      execute: (_, { signal }) => aborted(signal),
    });
    const { skein, lines, until } = await withScript([{ calls: [{ name: "wait" }] }], { tools: [wait] });
    const session = skein.session({ sessionId: "trip" });
    const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
    await session.append([
      { role: "user", content: [image] },
      { role: "custom", customType: "note", content: "n", display: true },
    ]);
    expect((await lines("trip")).at(-1)).toBe("note: n");
    const provenance = { kind: "external_user", sourceChannel: "desk" } as const;
    const said = { role: "user", content: "From Ann", timestamp: 5, provenance } as const;
    expect((await session.append([said])).entries).toMatchObject([{ type: "message", message: said }]);
    session.send("Go").result.catch(() => undefined);
    await until("run.tool");
    await expect(session.append([{ role: "user", content: "Me too" }])).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test("[LBR10] session.onStepFinish keeps each step of generateText with its model and usage", async () => {
    const { skein, lines } = await withScript(answering(), { visibility: "agent" });
    const session = skein.session({ sessionId: "trip" });
    const tools = await sessionTools(skein, { sessionId: "trip" });
    const model = scriptedModel([
      { calls: [{ name: "sessions_list", arguments: {} }], usage: { input: 10, output: 5 } },
      { text: "One session.", usage: { input: 20, output: 3 } },
    ]);
    const prompt = "How many sessions are there?";
    await session.append([{ role: "user", content: prompt }]);
    const { onStepFinish } = session;
    await generateText({ model, tools, prompt, stopWhen: isStepCount(3), onStepFinish });
    expect(await lines("trip")).toEqual([
      `user: ${prompt}`,
      "assistant: (sessions_list)",
      expect.stringContaining("result: "),
      "assistant: One session.",
    ]);
    const { entries = [] } =
      (await skein.store.sessions.page({}, "trip", { along: "branch", limit: 10 })) ?? {};
    expect(entries.at(-1)).toMatchObject({
      message: { model: model.modelId, usage: { input: 20, output: 3 } },
    });
  });

  test("[LBR11] guardedAppend checks what store.sessions.append does not", async () => {
    const store = await createStore({ memory: true });
    closing.push(store);
    const scope = { agentId: "main" };
    const { sessionId } = await store.sessions.create(scope, { key: "agent:main:main", cwd: "/" });
    const stray = {
      role: "toolResult",
      toolCallId: "c9",
      toolName: "x",
      content: [],
      isError: false,
    } as const;
    const { refused, entries } = await guardedAppend({ store }, scope, sessionId, { ...stray, content: [] });
    expect([refused, entries]).toEqual(["no pending call has the ID c9", []]);
    const raw = await store.sessions.append(scope, sessionId, [
      { draft: { type: "message", message: { ...stray, content: [] } } },
    ]);
    expect(raw.entries).toHaveLength(1);
  });
});

// The compiler checks these lines. Each tool has one that must compile and one that must not.
test("[LBR12] the result of callTool has the fields of the named tool", async () => {
  const skein = await open({ memory: true, config: null, agents });
  const as = { sessionKey: "agent:main:main" };
  await skein.session(as).send("repeat hello").result;
  const told: unknown[] = [];

  const { result: list } = await skein.callTool("sessions_list", {}, as);
  if ("sessions" in list) told.push(list.sessions[0]?.key.length);
  // @ts-expect-error a refusal has no rows
  expect(list.sessions).toHaveLength(1);

  const { result: history } = await skein.callTool("sessions_history", { sessionKey: "main" }, as);
  if ("messages" in history) told.push(history.messages[0]?.role.length);
  // @ts-expect-error not a field of sessions_history
  expect(history.sessions).toBeUndefined();

  const send = { sessionKey: "main", message: "x", role: "assistant" };
  const { result: sent } = await skein.callTool("sessions_send", send, as);
  told.push(sent.sessionKey?.length);
  // @ts-expect-error not a field of sessions_send
  expect(sent.childSession).toBeUndefined();

  const { result: spawned, rootId } = await skein.callTool("sessions_spawn", { task: "repeat x" }, as);
  await skein.settled(rootId ?? "");
  told.push(spawned.childSessionKey?.length);
  // @ts-expect-error not a field of sessions_spawn
  expect(spawned.reply).toBeUndefined();

  const { result: yielded } = await skein.callTool("sessions_yield", {}, as);
  told.push(yielded.status === "yielded" ? yielded.waitingFor.length : yielded.code.length);
  // @ts-expect-error a refusal waits for nothing
  expect(yielded.waitingFor).toBeUndefined();

  const { result: status } = await skein.callTool("session_status", {}, as);
  if ("policy" in status) told.push(status.children.length + status.agentId.length);
  // @ts-expect-error a refusal has no queue
  expect(status.queue).toBe(0);

  const { result: children } = await skein.callTool("subagents", { action: "list" }, as);
  if ("recent" in children) told.push(children.recent[0]?.task.length);
  // @ts-expect-error only a list has recent children
  expect(children.recent).toHaveLength(1);

  const { result: found } = await skein.callTool("session_search", { query: "hello" }, as);
  if ("hits" in found) told.push(found.hits[0]?.snippet.length);
  // @ts-expect-error a refusal has no hits
  expect(found.hits.length).toBeGreaterThan(0);

  const { result: short } = await skein.callTool("session_list", {}, as);
  if ("sessions" in short) told.push(short.sessions[0]?.sessionId.length);
  // @ts-expect-error a refusal has no visibility
  expect(short.visibility).toBeDefined();

  const { result: known } = await skein.callTool("agents_list", {}, as);
  if ("requester" in known) told.push(known.agents[0]?.id.length);
  // @ts-expect-error a refusal has no agents
  expect(known.agents).toHaveLength(1);

  expect(told).toHaveLength(10);
  for (const length of told) expect(length).toBeGreaterThan(0);
});
