import { afterEach, describe, expect, test } from "vitest";
import type { ScriptedReply } from "../../src/entry-testing.ts";
import type { MessageDraft } from "../../src/index.ts";
import { defineTool } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import type { HttpToolServer } from "../support/mcp-http.ts";
import { startHttpToolServer } from "../support/mcp-http.ts";
import type { TwinProvider } from "../support/twin-providers.ts";
import type { TwinSkeinOptions } from "../support/twin-skein.ts";
import { closeTwinSkeins, openTwinSkein, providerOf, sessionId } from "../support/twin-skein.ts";

let server: HttpToolServer | null = null;

afterEach(async () => {
  await closeTwinSkeins();
  await server?.close();
  server = null;
});

const says = (text: string): ScriptedReply => ({ content: [{ type: "text", text }] });
const user = (content: string): MessageDraft => ({ role: "user", content, timestamp: 1 });
const usage = {
  input: 1,
  output: 1,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 2,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const answer = (by: Omit<TwinProvider, "api"> & { api: string }, ...content: unknown[]): MessageDraft =>
  ({ role: "assistant", content, ...by, stopReason: "stop", usage, timestamp: 2 }) as unknown as MessageDraft;
const text = (words: string) => ({ type: "text", text: words });
const forged = Buffer.from("a signature of an earlier key").toString("base64");
const item = JSON.stringify({
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "Gardens first." }],
  encrypted_content: forged,
});

describe("encrypted thinking that its provider rejects", () => {
  const sealed = {
    "anthropic-messages": [
      { type: "thinking", thinking: "Gardens first.", thinkingSignature: forged },
      text("See the gardens."),
    ],
    "google-generative-ai": [{ ...text("See the gardens."), textSignature: forged }],
    "openai-responses": [
      { type: "thinking", thinking: "Gardens first.", thinkingSignature: item },
      text("See the gardens."),
    ],
  } as const;
  const apis = Object.keys(sealed) as (keyof typeof sealed)[];

  test.each(apis)("[HKP9] %s gets one more request without it", async (api) => {
    const { append, send, body, twin } = await openTwinSkein(api, { replies: [says("Kyoto.")] });
    await append(user("Plan a day"), answer(providerOf(api), ...sealed[api]));
    expect(await send("Where?")).toBe("Kyoto.");
    expect(twin.requests.map(({ refusal }) => refusal === null)).toEqual([false, true]);
    const sent = JSON.stringify(body());
    expect(sent).not.toContain(forged);
    expect(sent).toContain("See the gardens.");
    twin.enqueue(says("In November."));
    expect(await send("When?")).toBe("In November.");
  });

  test("[OVF4] a second rejection ends the turn with the provider's words", async () => {
    const message = "messages.1.content.0: Invalid `signature` in `thinking` block";
    const fault = { fault: "status", status: 400, message } as const;
    const { append, send, twin } = await openTwinSkein("anthropic-messages", { replies: [fault, fault] });
    await append(user("Plan a day"), answer(providerOf("anthropic-messages"), text("See the gardens.")));
    await expect(send("Where?")).rejects.toThrow("Invalid `signature`");
    expect(twin.requests).toHaveLength(2);
  });
});

describe("thinking returned to its provider", () => {
  test("[HKP11] a turn with nothing but thinking is sent to Mistral as text", async () => {
    const { append, send, body } = await openTwinSkein("mistral-conversations");
    const thinking = { type: "thinking", thinking: "Gardens first." };
    await append(user("Plan a day"), answer(providerOf("mistral-conversations"), thinking));
    await send("Where?");
    const messages = body().messages as { role: string; content: unknown }[];
    const said = messages.find(({ role }) => role === "assistant");
    expect(JSON.stringify(said?.content)).toContain("Gardens first.");
    expect(JSON.stringify(said?.content)).not.toContain("thinking");
  });

  const reasoned = async (options: TwinSkeinOptions & { name: string; model: string }) => {
    const opened = await openTwinSkein("openai-completions", options);
    const by = { provider: options.name, model: options.model, api: "openai-completions" } as const;
    const thinking = { type: "thinking", thinking: "Gardens first." };
    await opened.append(
      user("Plan a day"),
      answer(by as unknown as TwinProvider, thinking, text("See the gardens.")),
    );
    await opened.send("Where?");
    expect(opened.twin.requests.map(({ refusal }) => refusal)).toEqual([null]);
    const messages = opened.body().messages as { role: string; reasoning_content?: string }[];
    return messages.find(({ role }) => role === "assistant")?.reasoning_content;
  };

  test.each([
    ["deepseek", "deepseek-chat"],
    ["moonshot", "kimi-k2-thinking"],
    ["moonshotai", "kimi-k2-thinking"],
    ["kimi", "kimi-k2-thinking"],
  ])("[HKP12] %s gets its reasoning_content back by default", async (name, model) => {
    expect(await reasoned({ name, model })).toBe("Gardens first.");
  });

  test("[HKP13] no other OpenAI-compatible provider gets it by default", async () => {
    expect(await reasoned({ name: "local", model: "qwen3" })).toBeUndefined();
  });

  test("[HKP13] `reasoningContent` of a provider turns it on and off", async () => {
    const [on, off] = ["reasoningContent: true", "reasoningContent: false"];
    expect(await reasoned({ name: "proxy", model: "kimi-k2-thinking", provider: on })).toBe("Gardens first.");
    expect(await reasoned({ name: "deepseek", model: "deepseek-chat", provider: off })).toBeUndefined();
  });
});

describe("tool names", () => {
  const onePassword = defineTool({
    name: "1password__find",
    description: "Finds an item.",
    parameters: { type: "object", properties: {} },
    execute: async () => "found it",
  });
  const calls = (name: string): ScriptedReply => ({ content: [{ type: "toolCall", name, arguments: {} }] });

  test("[HKP14] a tool of a server named 1password is called through Google", async () => {
    server = await startHttpToolServer();
    const config = `mcpServers: { 1password: { url: "${server.url}" } }\n`;
    const replies = [
      { content: [{ type: "toolCall", name: "_1password__echo", arguments: { say: "hello" } }] },
      says("Done."),
    ] as const;
    const { send, body, twin, skein } = await openTwinSkein("google-generative-ai", { config, replies });
    expect(await send("Find it")).toBe("Done.");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null, null]);
    expect(JSON.stringify(body())).toContain('"name":"_1password__echo"');
    expect(JSON.stringify(body())).toContain("hello");
    const page = await skein.store.sessions.page({ agentId: "main" }, sessionId, {
      along: "branch",
      limit: 50,
    });
    expect(JSON.stringify(page?.entries)).toContain('"name":"1password__echo"');
  });

  test("[HKP15] a provider that accepts the name gets it unchanged", async () => {
    const { send, twin, body } = await openTwinSkein("anthropic-messages", {
      agent: { tools: [onePassword] },
      replies: [calls("1password__find"), says("Done.")],
    });
    expect(await send("Find it")).toBe("Done.");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null, null]);
    expect(JSON.stringify(body())).not.toContain("_1password");
  });

  test("two tools whose names become equal stay separate", async () => {
    const other = defineTool({
      name: "_1password__find",
      description: "Another one.",
      parameters: { type: "object", properties: {} },
      execute: async () => "the other",
    });
    const { send, body, twin } = await openTwinSkein("google-generative-ai", {
      agent: { tools: [onePassword, other], allow: ["*password*"] },
      replies: [calls("_1password__find"), says("Done.")],
    });
    await send("Find it");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null, null]);
    expect(JSON.stringify(body().contents)).toContain("the other");
  });

  test("[TR2] the X-ray lists the renamed tool and the renamed call", async () => {
    const { append, dir } = await openTwinSkein("google-generative-ai", {
      config: `mcpServers: { 1password: { url: "http://127.0.0.1:9/mcp" } }\n`,
    });
    const by = providerOf("google-generative-ai");
    const call = { type: "toolCall", id: "c1", name: "1password__find", arguments: {} };
    const result = {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "1password__find",
      content: [text("found it")],
      isError: false,
      timestamp: 3,
    } as unknown as MessageDraft;
    await append(user("Find it"), answer(by, call), result, user("Thanks"));
    const model = `${by.provider}/${by.model}`;
    const surroundings = { env: { SKEIN_DIR: dir }, cwd: dir, home: dir };
    const { out } = await run(["context", sessionId, "--json", "--wire", "--model", model], surroundings);
    const { changes, wire } = JSON.parse(out);
    expect(changes).toContainEqual(
      expect.objectContaining({ kind: "name_rewritten", note: expect.stringContaining("_1password__find") }),
    );
    expect(JSON.stringify(wire)).toContain('"name":"_1password__find"');
  });
});
