import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentInputItem, AgentOutputItem, Model, ModelRequest, Session } from "@openai/agents";
import { Agent, run, setTracingDisabled, tool, Usage } from "@openai/agents";
import type { Skein, SkeinOptions } from "skein";
import { createSkein, HookRegistry } from "skein";
import { openAgentSession } from "skein/openai-agents";
import { createStore } from "skein/store";
import { temporaryFolder } from "skein/testing";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";

setTracingDisabled(true);

const opened: Skein[] = [];
afterEach(async () => {
  for (const skein of opened.splice(0)) await skein.close();
});

const trip = { userId: "ann", sessionId: "trip" };

async function openTrip(options: SkeinOptions = {}) {
  const skein = await createSkein({ memory: true, config: null, env: {}, ...options });
  opened.push(skein);
  const session = await openAgentSession(skein, trip);
  const search = async (query: string) => (await skein.sessions.search({ userId: "ann", query })).hits;
  return { skein, session, search };
}

const says = (text: string): AgentOutputItem => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, providerData: { annotations: [{ kind: "none" }] } }],
});
const calls = (name: string): AgentOutputItem => ({
  type: "function_call",
  callId: "call_1",
  name,
  arguments: '{"city":"Kyoto"}',
  status: "completed",
  providerData: { trace: 7 },
});

/** A model that gives these answers, one per request, and records the requests. */
class ScriptedModel implements Model {
  readonly requests: ModelRequest[] = [];
  readonly #answers: AgentOutputItem[][];

  constructor(...answers: AgentOutputItem[][]) {
    this.#answers = answers;
  }

  async getResponse(request: ModelRequest) {
    this.requests.push(request);
    const output = this.#answers[this.requests.length - 1];
    if (output === undefined) throw new Error("The script has ended.");
    return { usage: new Usage(), output };
  }

  getStreamedResponse(): never {
    throw new Error("Nothing is streamed here.");
  }

  /** The texts of the last request. */
  get lastInput(): string {
    return JSON.stringify(this.requests.at(-1)?.input);
  }
}

const look = tool({
  name: "look",
  description: "Looks for gardens.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `three gardens in ${city}`,
});

function agentWith(model: Model) {
  return new Agent({ name: "Planner", instructions: "You plan journeys.", model, tools: [look] });
}

/** One item of every kind that a model or a tool of the SDK can produce. */
const everyKind: AgentInputItem[] = [
  { type: "message", role: "user", content: "Plan" },
  {
    role: "user",
    content: [
      { type: "input_text", text: "What is it?" },
      { type: "input_image", image: "data:image/png;base64,iVBORw0KGgo=" },
    ],
  },
  { type: "message", role: "system", content: "Be brief." },
  {
    type: "reasoning",
    id: "rs_1",
    content: [{ type: "input_text", text: "Hm." }],
    rawContent: [{ type: "reasoning_text", text: "Hm, hm." }],
    providerData: { encrypted: "x" },
  },
  calls("look"),
  {
    type: "function_call_result",
    callId: "call_1",
    name: "look",
    status: "completed",
    output: { type: "text", text: "three gardens" },
  },
  {
    type: "hosted_tool_call",
    id: "ws_1",
    name: "web_search_call",
    status: "completed",
    providerData: { query: "moss" },
  },
  { type: "computer_call", callId: "call_2", status: "completed", action: { type: "screenshot" } },
  {
    type: "computer_call_result",
    callId: "call_2",
    output: { type: "computer_screenshot", data: "data:image/png;base64,iVBORw0KGgo=" },
  },
  { type: "compaction", encrypted_content: "sealed" },
  { type: "unknown", providerData: { anything: [1, null, "two"] } },
  says("Three gardens."),
];

describe("a session of the OpenAI Agents SDK", () => {
  test("[OAS1] an agent remembers an earlier run, with its tool calls", async () => {
    const { session, skein } = await openTrip();
    const model = new ScriptedModel([calls("look")], [says("Three gardens.")], [says("By train.")]);
    const agent = agentWith(model);
    expect((await run(agent, "Plan three days", { session })).finalOutput).toBe("Three gardens.");
    const again = await openAgentSession(skein, trip);
    expect((await run(agent, "How do I get there?", { session: again })).finalOutput).toBe("By train.");
    for (const text of ["Plan three days", "three gardens in Kyoto", "Three gardens.", "How do I"])
      expect(model.lastInput).toContain(text);
    const { messages } = await session.session.history();
    expect(messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  test("[OAS2] every field of every kind of item comes back", async () => {
    const { session } = await openTrip();
    const typed: Session = session;
    await typed.addItems(everyKind.slice(0, 5));
    await typed.addItems(everyKind.slice(5));
    expect(await typed.getItems()).toEqual(everyKind);
    expect(await typed.getItems(3)).toEqual(everyKind.slice(-3));
    expect(await typed.getItems(0)).toEqual([]);
    const bytes = { role: "user", content: [{ type: "input_image", image: new Uint8Array([1, 2]) }] };
    await session.addItems([bytes]);
    expect(await session.getItems(1)).toEqual([bytes]);
    expect(await typed.getSessionId()).toBe("trip");
  });

  test("[OAS3] removed items are on another branch, to which the session can return", async () => {
    const { session } = await openTrip();
    await session.addItems(everyKind);
    const leafId = (await session.session.record())?.leafId ?? "";
    expect(await session.popItem()).toEqual(everyKind.at(-1));
    expect(await session.getItems()).toEqual(everyKind.slice(0, -1));
    await session.clearSession();
    expect(await session.getItems()).toEqual([]);
    expect(await session.popItem()).toBeUndefined();
    await session.addItems([says("New.")]);
    expect(await session.getItems()).toEqual([says("New.")]);
    await session.session.branch(leafId);
    expect(await session.getItems()).toEqual(everyKind);
    const copy = await session.session.fork({});
    expect(copy.sessionId).not.toBe("trip");
  });

  test("[OAS3] a replaced function call leaves the old one on another branch", async () => {
    const { session } = await openTrip();
    await session.addItems(everyKind);
    const replacement = { ...calls("look"), arguments: '{"city":"Nara"}' };
    await session.applyHistoryMutations({
      mutations: [{ type: "replace_function_call", callId: "call_1", replacement }],
    });
    expect(await session.getItems()).toEqual(everyKind.with(4, replacement as AgentInputItem));
    const { entries } = await session.session.entries({ along: "all", limit: 100 });
    expect(JSON.stringify(entries)).toContain("Kyoto");
  });

  test("[OAS4] a transaction is applied once, also when it is repeated by another process", async () => {
    const { session, skein } = await openTrip();
    const transaction = { type: "append_items", items: [says("One.")] } as const;
    await session.applyHistoryTransaction({ operationId: "a", transaction });
    const other = await openAgentSession(skein, trip);
    await other.applyHistoryTransaction({ operationId: "a", transaction });
    expect(await session.getItems()).toEqual([says("One.")]);
    const different = { type: "append_items", items: [says("Two.")] } as const;
    await expect(
      session.applyHistoryTransaction({ operationId: "a", transaction: different }),
    ).rejects.toMatchObject({ code: "conflict" });
    const replace = {
      type: "replace_suffix",
      expectedSuffix: [says("One.")],
      replacement: [says("Two."), says("Three.")],
    } as const;
    await session.applyHistoryTransaction({ operationId: "b", transaction: replace });
    await session.applyHistoryTransaction({ operationId: "b", transaction: replace });
    expect(await session.getItems()).toEqual([says("Two."), says("Three.")]);
  });

  test("[OAS5] a transaction that expects other items changes nothing", async () => {
    const { session } = await openTrip();
    await session.addItems([says("One.")]);
    const transaction = {
      type: "replace_suffix",
      expectedSuffix: [says("Zero.")],
      replacement: [says("Two.")],
    } as const;
    const apply = () => session.applyHistoryTransaction({ operationId: "a", transaction });
    await expect(apply()).rejects.toMatchObject({ code: "conflict" });
    expect(await session.getItems()).toEqual([says("One.")]);
    await session.addItems([says("Zero.")]);
    await apply();
    expect(await session.getItems()).toEqual([says("One."), says("Two.")]);
    await expect(session.addItems(["nonsense" as unknown as object])).rejects.toMatchObject({
      code: "invalid_arguments",
    });
  });

  test("[OAS6] an agent continues a conversation of another agent", async () => {
    const { skein, session } = await openTrip();
    await skein.session(trip).append([
      { role: "user", content: "Plan by bicycle" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I look." },
          { type: "tool-call", toolCallId: "call_9", toolName: "look", input: { city: "Nara" } },
        ],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "call_9",
            toolName: "look",
            output: { type: "text", value: "deer" },
          },
        ],
      },
      { role: "assistant", content: "Deer in Nara." },
    ]);
    const items = (await session.getItems()) as AgentInputItem[];
    expect(items.map(({ type }) => type)).toEqual([
      "message",
      "message",
      "function_call",
      "function_call_result",
      "message",
    ]);
    const model = new ScriptedModel([says("By bicycle, then.")]);
    await run(agentWith(model), "And then?", { session });
    expect(model.lastInput).toContain("Plan by bicycle");
    expect(model.lastInput).toContain('"callId":"call_9"');
    for (const _ of [1, 2, 3, 4]) await session.popItem();
    expect(await session.getItems()).toEqual(items.slice(0, 3));
    expect(await session.popItem()).toEqual(items[2]);
    expect(await session.getItems()).toEqual(items.slice(0, 2));
  });

  test("[OAS7] search finds the items, and the request to another model can be shown", async () => {
    const { session, search } = await openTrip();
    await session.addItems([...everyKind, says("The lantern keeper knows.")]);
    expect(await search("lantern")).toMatchObject([{ sessionId: "trip" }]);
    const { request } = await session.session.xray("anthropic/claude-sonnet-4-5");
    expect(request.messages.map(({ role }) => role)).toContain("toolResult");
    expect(JSON.stringify(request.messages)).toContain("lantern");
  });

  test("[OAS8] redacting the entries of a transaction's items erases them", async () => {
    const folder = temporaryFolder("skein-openai-");
    const skein = await createSkein({ dir: folder.path, config: null, env: {} });
    opened.push(skein);
    const session = await openAgentSession(skein, trip);
    const append = { type: "append_items", items: [says("The word is swordfish.")] } as const;
    await session.applyHistoryTransaction({ operationId: "a", transaction: append });
    const replacement = [says("The new word is swordfish.")];
    const replace = { type: "replace_suffix", expectedSuffix: append.items, replacement } as const;
    await session.applyHistoryTransaction({ operationId: "b", transaction: replace });
    const { entries } = await session.session.entries({ along: "all", limit: 100 });
    const messages = entries.filter((entry) => entry.type === "message");
    const agentId = (await session.session.record())?.agentId ?? "";
    await skein.close();
    const store = await createStore({ dir: folder.path });
    const scope = { userId: "ann", agentId };
    await store.sessions.redact(
      scope,
      "trip",
      messages.map(({ id }) => id),
    );
    await store.close();
    const files = readdirSync(folder.path, { recursive: true, withFileTypes: true });
    const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
    expect(messages).toHaveLength(2);
    expect(paths.filter((path) => readFileSync(path).includes("swordfish"))).toEqual([]);
    folder.remove();
  });

  test("[OAS9] secrets are masked in everything that is written", async () => {
    const { session } = await openTrip({ config: { redaction: { onWrite: true } } });
    const secret = `ghp_${"a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}`;
    const items = [says(secret), { type: "compaction", encrypted_content: secret }, calls(secret)];
    await session.addItems(items);
    const transaction = { type: "append_items", items } as const;
    for (const _ of ["first", "repeated"])
      await session.applyHistoryTransaction({ operationId: "a", transaction });
    const { entries } = await session.session.entries({ along: "all", limit: 100 });
    expect(entries.filter(({ type }) => type !== "custom")).toHaveLength(6);
    expect(JSON.stringify(entries)).not.toContain(secret);
    expect(JSON.stringify(await session.getItems())).toContain("ghp_a1");
  });

  test("[OAS9] hooks replace and refuse messages", async () => {
    const hooks = new HookRegistry();
    hooks.on("before_message_write", ({ message }) =>
      JSON.stringify(message).includes("secret") ? { refuse: "no secrets" } : undefined,
    );
    hooks.on("tool_result_persist", ({ message }) => ({
      replace: { ...message, content: [{ type: "text", text: "shortened" }], skein: {} },
    }));
    const { session } = await openTrip({ hooks });
    await expect(session.addItems([says("open"), says("secret")])).rejects.toMatchObject({
      code: "forbidden",
      message: expect.stringContaining("no secrets"),
    });
    expect(await session.getItems()).toEqual([]);
    const output = { type: "text", text: "three gardens" };
    const result = { type: "function_call_result", callId: "call_1", name: "look", status: "completed" };
    await session.addItems([calls("look"), { ...result, output }]);
    expect(await session.getItems(1)).toEqual([{ ...result, output: { ...output, text: "shortened" } }]);
  });
});
