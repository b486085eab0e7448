import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel, ModelMessage } from "ai";
import { APICallError, generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import type { ScriptedReply, Twin, TwinApi, TwinOptions, TwinRequest } from "../../src/entry-testing.ts";
import { checkRequest, startTwin } from "../../src/entry-testing.ts";
import { generateRequest, messagesRequest, send } from "../support/twins.ts";

const twins: Twin[] = [];
afterEach(() => Promise.all(twins.splice(0).map((twin) => twin.close())));

const tools = {
  find: tool({
    description: "Finds what there is.",
    inputSchema: jsonSchema<{ what: string }>({
      type: "object",
      properties: { what: { type: "string" } },
      required: ["what"],
    }),
    execute: async ({ what }) => `Some ${what}.`,
  }),
};

type Settings = { readonly baseURL: string; readonly apiKey: string };
const models: Readonly<Record<TwinApi, (settings: Settings, name: string) => LanguageModel>> = {
  "anthropic-messages": (settings, name) => createAnthropic(settings)(name),
  "google-generative-ai": (settings, name) => createGoogle(settings)(name),
  "openai-responses": (settings, name) => createOpenAI(settings).responses(name),
  "openai-completions": (settings, name) =>
    createOpenAICompatible({ ...settings, name: "local", includeUsage: true })(name),
  "mistral-conversations": (settings, name) => createMistral(settings)(name),
};

async function begin(options: TwinOptions, name: string): Promise<{ twin: Twin; model: LanguageModel }> {
  const twin = await startTwin(options);
  twins.push(twin);
  return { twin, model: models[options.api]({ baseURL: twin.url, apiKey: "any" }, name) };
}

const thinkingOf = {
  anthropic: { thinking: { type: "enabled" as const, budgetTokens: 2000 } },
  google: { thinkingConfig: { includeThoughts: true } },
};

const looks: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "The gardens first, then the food." },
    { type: "text", text: "I will look into both." },
    { type: "toolCall", name: "find", arguments: { what: "gardens" } },
    { type: "toolCall", name: "find", arguments: { what: "food" } },
  ],
  usage: { input: 100, cacheRead: 20, output: 50, reasoning: 10 },
};
const again: ScriptedReply = {
  content: [{ type: "toolCall", name: "find", arguments: { what: "tea" } }],
};
const concludes: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "That is enough." },
    { type: "thinking", thinking: "Not for anybody's eyes.", redacted: true },
    { type: "text", text: "Gardens, food and tea: three days will do." },
  ],
};

describe.each([
  ["anthropic-messages", "claude-sonnet-4-5"],
  ["google-generative-ai", "gemini-3-pro-preview"],
  ["google-generative-ai", "gemini-2.5-flash"],
] as const)("the AI SDK and a twin of %s as %s", (api, name) => {
  test("[TWA10] text, thinking with its signature, parallel calls and usage are preserved", async () => {
    const { model } = await begin({ api, replies: [looks] }, name);
    const stream = streamText({ model, prompt: "Plan", tools, providerOptions: thinkingOf });
    const pieces: string[] = [];
    for await (const piece of stream.textStream) pieces.push(piece);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.join("")).toBe("I will look into both.");
    expect(await stream.reasoningText).toBe("The gardens first, then the food.");
    expect(JSON.stringify(await stream.content)).toMatch(/"(?:signature|thoughtSignature)":"[\w+/=]{40,}"/);
    expect((await stream.toolCalls).map(({ input }) => input)).toEqual([
      { what: "gardens" },
      { what: "food" },
    ]);
    expect(await stream.finishReason).toBe("tool-calls");
    expect(await stream.usage).toMatchObject({
      inputTokens: 120,
      outputTokens: 50,
      inputTokenDetails: { cacheReadTokens: 20 },
      outputTokenDetails: { reasoningTokens: 10 },
    });
  });

  test("[TWA10] answers are accepted back in the history, step by step and turn by turn", async () => {
    const { twin, model } = await begin({ api, replies: [looks, again, concludes, concludes] }, name);
    const messages: ModelMessage[] = [{ role: "user", content: "Plan three days" }];
    const options = { model, tools, stopWhen: isStepCount(5), providerOptions: thinkingOf };
    const stream = streamText({ ...options, messages });
    expect(await stream.text).toBe("Gardens, food and tea: three days will do.");
    expect(await stream.steps).toHaveLength(3);
    messages.push(...(await stream.responseMessages), { role: "user", content: "And by train?" });
    const { text } = await generateText({ ...options, messages });
    expect(text).toContain("three days");
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null, null, null, null]);
    expect(JSON.stringify(twin.requests.at(-1)?.body)).toContain("ignature");
  });

  test("[TWA10] a refusal is an error with the provider's message", async () => {
    const { model } = await begin({ api, contextWindow: 50 }, name);
    const long = generateText({ model, prompt: "word ".repeat(100), maxRetries: 0 });
    await expect(long).rejects.toSatisfy(
      (error) => APICallError.isInstance(error) && error.statusCode === 400,
    );
    await expect(long).rejects.toThrow(/too long|exceeds the maximum number of tokens/);
  });

  test("[TWA10] thinking of another model is refused", async () => {
    const { model } = await begin({ api, replies: [looks] }, name);
    const { responseMessages } = await generateText({
      model,
      prompt: "Plan",
      tools,
      providerOptions: thinkingOf,
    });
    const other = api === "anthropic-messages" ? "claude-opus-4-5" : "gemini-2.5-pro";
    const second = await begin({ api }, other);
    const messages: ModelMessage[] = [{ role: "user", content: "Plan" }, ...responseMessages];
    await expect(generateText({ model: second.model, messages, tools, maxRetries: 0 })).rejects.toThrow(
      /ignature/,
    );
  });
});

describe.each([
  ["openai-responses", "gpt-5"],
  ["openai-completions", "qwen3"],
  ["mistral-conversations", "mistral-large-latest"],
] as const)("the AI SDK and a twin of %s as %s", (api, name) => {
  const calls: ScriptedReply = { ...looks, content: looks.content.filter(({ type }) => type !== "thinking") };

  test("[TWA10] text, parallel calls and usage are preserved, and accepted in the history", async () => {
    const { twin, model } = await begin(
      { api, replies: [calls, again, { content: [{ type: "text", text: "Three days will do." }] }] },
      name,
    );
    const stream = streamText({ model, prompt: "Plan", tools, stopWhen: isStepCount(5) });
    expect(await stream.text).toBe("Three days will do.");
    const [first] = await stream.steps;
    expect(first?.text).toBe("I will look into both.");
    expect(first?.toolCalls.map(({ input }) => input)).toEqual([{ what: "gardens" }, { what: "food" }]);
    expect(first?.usage).toMatchObject({ inputTokens: 120, outputTokens: 50 });
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null, null, null]);
  });
});

describe("a twin rejects what its provider rejects", () => {
  const posted = (path: string, body: object): TwinRequest => ({ method: "POST", path, headers: {}, body });
  const hello = { role: "user", content: "Hello" };
  const part = { text: "Hello" };
  const requests: readonly (readonly [TwinApi, valid: TwinRequest, broken: TwinRequest, rule: string])[] = [
    [
      "anthropic-messages",
      messagesRequest(),
      messagesRequest({
        messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "none", content: "x" }] }],
      }),
      "tools_missing",
    ],
    ["anthropic-messages", messagesRequest(), messagesRequest({ max_tokens: 0 }), "max_tokens"],
    [
      "google-generative-ai",
      generateRequest(),
      generateRequest({
        contents: [
          { role: "user", parts: [part] },
          { role: "system", parts: [part] },
        ],
      }),
      "unknown_role",
    ],
    [
      "openai-completions",
      posted("/v1/chat/completions", { model: "m", messages: [hello] }),
      posted("/v1/chat/completions", {
        model: "m",
        messages: [hello, { role: "tool", tool_call_id: "none", content: "x" }],
      }),
      "tool_result_without_call",
    ],
    [
      "openai-responses",
      posted("/v1/responses", { model: "gpt-5", input: [hello] }),
      posted("/v1/responses", {
        model: "gpt-5",
        input: [hello, { type: "function_call_output", call_id: "none", output: "x" }],
      }),
      "tool_result_without_call",
    ],
    [
      "mistral-conversations",
      posted("/v1/chat/completions", { model: "mistral-large-latest", messages: [hello] }),
      posted("/v1/chat/completions", {
        model: "mistral-large-latest",
        messages: [hello, { role: "assistant", content: "Hi." }],
      }),
      "last_message_assistant",
    ],
  ];

  test.each(requests)("[TWA1] %s", async (api, valid, broken, rule) => {
    const { twin } = await begin(
      { api, otherwise: () => ({ content: [{ type: "text", text: "Hi." }] }) },
      "any",
    );
    expect((await send(twin, valid)).status).toBe(200);
    const refused = await send(twin, broken);
    const refusal = checkRequest(api, broken);
    expect(refusal).toMatchObject({ rule, status: refused.status, body: await refused.json() });
    expect(refused.status).toBe(400);
    expect(twin.requests.map((request) => request.refusal?.rule ?? null)).toEqual([null, rule]);
    expect(checkRequest(api, valid)).toBeNull();
  });
});
