import { afterEach, describe, expect, test } from "vitest";
import type { Content } from "../../src/core/messages.ts";
import type { AgentSpec } from "../../src/index.ts";
import { childDenyList } from "../../src/sessions/child-rules.ts";
import { sessionsYield } from "../../src/tools/sessions-yield.ts";
import type { Family } from "../support/family.ts";
import { calls, desk, gate, results, withParts } from "../support/family.ts";
import type { Seed } from "../support/seeds.ts";
import { added, denied, filled, lacking, ownFields, seedOf, seedTools } from "../support/seeds.ts";
import { closeAll, newFolder } from "../support/skein.ts";
import { textOf } from "../support/text.ts";
import { WatchingWorld } from "../support/watching-world.ts";

afterEach(closeAll);

const main = "agent:main:main";
const asker = "agent:main:session:asker";
const usage = { input: 900, output: 100 };

/** The main session as in the documents, and four others. The requester is one of them. */
async function documented(agent: Partial<AgentSpec> = {}, agentToAgent: object = {}): Promise<Family> {
  const { channel } = desk("feishu");
  const parts = {
    Hello: (_: unknown, index: number) => ({ text: index === 0 ? "Hi there!" : "REPLY_SKIP", usage }),
    "分析 AAPL": [{ text: "Up." }],
    "Look around": [{ text: "Nothing." }],
    Plan: [calls(["sessions_spawn", { task: "Look around" }], ["sessions_yield", {}]), { text: "Good." }],
  };
  const price = { input: 1, output: 2 };
  const family = await withParts(parts, {
    dir: newFolder(),
    channels: [channel],
    agent: { model: "priced/script", thinking: "high", ...agent },
    others: [{ id: "other" }],
    settings: {
      session: { dmScope: "main" },
      channels: { feishu: { users: { ou_1: null } } },
      models: { providers: { priced: { models: { script: { price } } } } },
      tools: { agentToAgent },
    },
  });
  const { skein } = family;
  const { runId } = await skein.receive({ channel: "feishu", peer: "ou_1", messageId: "m1", text: "Hello" });
  await family.settled(runId);
  const { sessionId } = await family.at(main);
  const meta = { label: "Main Session", displayName: "主会话", thinkingLevel: "high" };
  await skein.store.sessions.patch({ agentId: "main" }, sessionId, meta);
  for (const name of ["asker", "c", "d", "e"]) await family.make(`agent:main:session:${name}`);
  return family;
}

/** Returns the differences between our result of a call and the document. */
async function differences(family: Family, tool: string, name: string, args: object = {}): Promise<string[]> {
  const seed = seedOf(tool, name);
  return compare(tool, await family.call(tool, seed.arguments ?? args, asker), seed.result);
}

/**
 * Compares in both directions: missing fields, and fields that are neither in the document nor in our list of
 * additions.
 */
function compare(tool: string, ours: unknown, seed: Seed["result"]): string[] {
  const own = ownFields(tool);
  const beyond = added(ours, seed).filter((field) => !own.has(field));
  return [...lacking(ours, seed), ...new Set(beyond.map((field) => `${field}: only ours`))];
}

async function said(family: Family, ...contents: readonly unknown[]): Promise<void> {
  const { sessionId } = await family.at(main);
  const drafts = contents.map((content) => ({
    draft: { type: "message", message: { role: "user", content } } as never,
  }));
  await family.skein.store.sessions.append({ agentId: "main" }, sessionId, drafts);
}

describe("the examples of the source documents", () => {
  test("names, labels and descriptions are those of the documents", async () => {
    const { skein } = await documented();
    const ours = new Map((await skein.tools()).map((tool) => [tool.name, tool]));
    for (const { names: _, ...tool } of seedTools()) expect(ours.get(tool.name)).toMatchObject(tool);
    expect(childDenyList("leaf", { allow: [], deny: [] })).toEqual(expect.arrayContaining([...denied()]));
  });

  test("sessions_list returns their rows and messages", async () => {
    const family = await documented();
    expect(await differences(family, "sessions_list", "format", { messageLimit: 2 })).toEqual([]);
    expect(await differences(family, "sessions_list", "example")).toEqual([]);
  });

  test("sessions_history returns their messages", async () => {
    const family = await documented();
    expect(await differences(family, "sessions_history", "format", { sessionKey: "main" })).toEqual([]);
    expect(await differences(family, "sessions_history", "example")).toEqual([]);
  });

  test("sessions_history over its cap, with an image and with an oversized message", async () => {
    const family = await documented();
    const history = { sessionKey: "main" };
    await said(family, [
      { type: "image", data: Buffer.alloc(300).toString("base64"), mimeType: "image/png" },
    ]);
    expect(await differences(family, "sessions_history", "image", history)).toEqual([]);
    const image = await family.call("sessions_history", { ...history, limit: 1 }, asker);
    // A deliberate difference: the size is the image's own, not that of its base64 form.
    expect(image.messages).toMatchObject([{ content: [{ bytes: 300 }] }]);
    await said(family, ...Array.from({ length: 30 }, () => "word ".repeat(790)));
    expect(await differences(family, "sessions_history", "capped", history)).toEqual([]);
    const { messages } = await family.call("sessions_history", history, asker);
    // A deliberate difference: as many as fit are kept, while the document keeps only the last one.
    expect((messages as unknown[]).length).toBeGreaterThan(15);
    await said(
      family,
      Array.from({ length: 30 }, () => ({ type: "text", text: "word ".repeat(790) })),
    );
    expect(await differences(family, "sessions_history", "too large", history)).toEqual([]);
  });

  test("sessions_list has a limit and refuses unknown kinds, a deliberate difference", async () => {
    const family = await documented();
    const refused = await family.call("sessions_list", { kinds: ["main", "gruop"] }, asker);
    expect(refused).toMatchObject({ status: "error", code: "invalid_arguments" });
    expect(String(refused.error)).toContain("main, group, cron, hook, node, other");
    const { parameters } = (await family.skein.tools()).find(({ name }) => name === "sessions_list") ?? {};
    expect(parameters).toMatchObject({ properties: { limit: { default: 100, maximum: 200 } } });
  });

  test("sessions_send answers as documented", async () => {
    const family = await documented();
    const message = "Hello?";
    const told = (name: string, args: object) => differences(family, "sessions_send", name, args);
    expect(await told("example", {})).toEqual([]);
    expect(await told("key and label", { sessionKey: "main", label: "x", message })).toEqual([]);
    expect(await told("neither", { message })).toEqual([]);
    const unknown = await family.call("sessions_send", { label: "nobody", message }, asker);
    const { error, ...seed } = seedOf("sessions_send", "unknown label").result;
    expect(compare("sessions_send", unknown, { ...seed, error: filled(error, "nobody") })).toEqual([]);
  });

  test("sessions_send: an agent without a session means its main session, a deliberate difference", async () => {
    const family = await documented({ visibility: "all" }, { enabled: true });
    await family.make("agent:other:main");
    const sent = await family.call("sessions_send", { agentId: "other", message: "Hello" }, asker);
    expect(sent).toMatchObject({ status: "sent", sessionKey: "agent:other:main" });
    await family.settled(String(sent.runId));
  });

  test.each([
    { name: "agents apart", policy: { enabled: false } },
    { name: "pair not allowed", policy: { enabled: true, allow: ["other -> main"] } },
  ])("sessions_send to another agent if only that rule refuses: $name", async ({ name, policy }) => {
    const family = await documented({ visibility: "all" }, policy);
    const { sessionId } = await family.make("agent:other:main");
    await family.skein.store.sessions.patch({ agentId: "other" }, sessionId, { label: "desk" });
    const args = { label: "desk", agentId: "other", message: "Hello" };
    expect(await differences(family, "sessions_send", name, args)).toEqual([]);
  });

  test("sessions_send out of a sandbox", async () => {
    const family = await documented({ sandboxed: true });
    const args = { label: "Main Session", message: "Hello" };
    const told = (name: string, more: object = {}) =>
      differences(family, "sessions_send", name, { ...args, ...more });
    expect(await told("sandboxed, label out of sight")).toEqual([]);
    expect(await told("sandboxed, label of another agent", { agentId: "other" })).toEqual([]);
  });

  test("sessions_spawn answers as documented", async () => {
    const family = await documented();
    const told = (name: string, args: object) =>
      differences(family, "sessions_spawn", name, { task: "Look around", ...args });
    expect(await told("example", {})).toEqual([]);
    expect(await told("streamTo", { streamTo: "parent" })).toEqual([]);
    expect(await told("resumeSessionId", { resumeSessionId: "x" })).toEqual([]);
    const attachments = [{ name: "a.txt", content: "a" }];
    expect(await told("attachments for acp", { runtime: "acp", attachments })).toEqual([]);
    const text = seedOf("sessions_spawn", "parameter of a channel").result.error;
    for (const name of [
      "target",
      "transport",
      "channel",
      "to",
      "threadId",
      "thread_id",
      "replyTo",
      "reply_to",
    ]) {
      const { error } = await family.call("sessions_spawn", { task: "Look around", [name]: "x" }, asker);
      // A deliberate difference: there is no tool named "message".
      expect(error).toBe(filled(text, name).replace('"message" or ', ""));
    }
    // No ACP agent is configured, so the spawn is refused. It is never replaced by a sub-agent.
    const acp = await family.call("sessions_spawn", { task: "Look around", runtime: "acp" }, asker);
    expect(acp).toMatchObject({ status: "error", code: "acp_unavailable" });
    const [run] = await family.skein.runs.list({ states: ["ok"] });
    await family.settled(run?.runId ?? "");
  });

  test("sessions_yield answers as documented", async () => {
    const family = await documented();
    const turn = family.skein.session({ sessionKey: asker }).send("Plan");
    await turn.result;
    const [, yielded] = results(family.asked("Plan")[1]);
    expect(compare("sessions_yield", yielded, seedOf("sessions_yield", "yielded").result)).toEqual([]);
    expect(await differences(family, "sessions_yield", "outside of a run")).toEqual([]);
    // Calls through Skein always have a session.
    const world = new WatchingWorld();
    const nobody = { ...world.caller(await world.session(main)), session: null };
    const { result } = await sessionsYield.execute({}, nobody, world.deps);
    expect(compare("sessions_yield", result, seedOf("sessions_yield", "without a session").result)).toEqual(
      [],
    );
  });
});

describe("the short forms of the source documents", () => {
  test("every parameter that they name exists", async () => {
    const family = await documented();
    for (const { name, names } of seedTools()) {
      // An unknown name is refused with a list of the known ones, including aliases.
      const { error } = await family.call(name, { nothingOfTheKind: 1 }, asker);
      for (const parameter of names) expect(String(error)).toMatch(new RegExp(`\\b${parameter}\\b`));
    }
  });

  test("before and after page through history", async () => {
    const family = await documented();
    await said(family, "Two", "Three");
    const read = async (args: object) => {
      const result = await family.call("sessions_history", { sessionKey: "main", limit: 2, ...args }, asker);
      const messages = result.messages as { id: string; content: Content }[];
      return { ...result, texts: messages.map(({ content }) => textOf(content)), messages };
    };
    const last = await read({});
    expect(last.texts).toEqual(["Two", "Three"]);
    const before = await read({ before: last.messages[0]?.id });
    expect(before.texts).toEqual(["Hello", "Hi there!"]);
    expect((await read({ after: before.messages[0]?.id })).texts).toEqual(["Hi there!", "Two"]);
  });

  test("a message with the role assistant is the session's own message", async () => {
    const family = await documented();
    const note = { sessionKey: "main", message: "I said so.", role: "assistant" };
    const { runId, status } = await family.call("sessions_send", note, asker);
    expect(status).toBe("sent");
    await family.settled(String(runId));
    expect((await family.linesAt(main)).at(-1)).toBe("assistant: I said so.");
    const asked = { ...note, role: "user", message: "And?", timeoutSeconds: 30 };
    expect(await family.call("sessions_send", asked, asker)).toMatchObject({ status: "ok" });
  });

  test("a spawn accepts prompt, tools, timeout and background", async () => {
    const family = await documented({ tools: [gate("look").tool, gate("touch").tool] });
    const form = { prompt: "Look around", agentId: "main", tools: ["look"], timeout: 90 };
    const waited = await family.call("sessions_spawn", { ...form, background: false }, asker);
    expect(waited).toMatchObject({ status: "ok", result: "Nothing.", outcome: "ok" });
    const run = await family.skein.runs.get(String(waited.runId));
    expect(run?.options).toMatchObject({ runTimeoutSeconds: 90 });
    const [request] = family.asked("Look around");
    expect(request?.tools?.map(({ name }) => name) ?? []).toEqual(["look"]);
  });

  test("session_status reports what they list", async () => {
    const family = await documented();
    const status = await family.call("session_status", {}, main);
    expect(Object.keys(status)).toEqual(
      expect.arrayContaining([...(seedOf("session_status", "format").names ?? [])]),
    );
    expect(status).toMatchObject({ sessionKey: "main", agentId: "main", channel: "feishu" });
    expect(status.tools).toContain("sessions_list");
  });
});
