import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel, ModelMessage } from "ai";
import { APICallError, generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { expect, test } from "vitest";
import { countedIds, posted, twinFetch } from "../../../test/support/twin-fetch.ts";
import { wireFormats } from "../server/check-request.ts";
import type { ScriptedReply } from "./contract.ts";

const openaiChat = wireFormats["openai-completions"];

const look: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "Two places, two looks." },
    { type: "text", text: "I look at both places, 京都 and 大阪 😀." },
    { type: "toolCall", name: "look", arguments: { place: "Kyoto", depth: { days: 3 } } },
    { type: "toolCall", name: "look", arguments: { place: "Osaka" }, id: "call_mine" },
  ],
  usage: { input: 10, output: 9, cacheRead: 5, cacheWrite: 2, reasoning: 4 },
};
const done: ScriptedReply = { content: [{ type: "text", text: "Three days, day by day." }] };

const seen: unknown[] = [];
const tools = {
  look: tool({
    inputSchema: jsonSchema<{ place: string }>({ type: "object", properties: { place: { type: "string" } } }),
    execute: async (input) => {
      seen.push(input);
      return "temples";
    },
  }),
};
const clients: [name: string, model: (fetch: typeof globalThis.fetch) => LanguageModel][] = [
  [
    "@ai-sdk/openai",
    (fetch) => createOpenAI({ apiKey: "k", baseURL: "http://twin/v1", fetch }).chat("gpt-5"),
  ],
  [
    "@ai-sdk/openai-compatible",
    (fetch) =>
      createOpenAICompatible({
        name: "twin",
        baseURL: "http://twin/v1",
        includeUsage: true,
        fetch,
      }).chatModel("gpt-5"),
  ],
];

test.each(clients)("[TWA10] %s reads the stream, and its next request is accepted", async (_, model) => {
  seen.length = 0;
  const twin = twinFetch(openaiChat, [look, done]);
  const messages: ModelMessage[] = [{ role: "user", content: "Plan three days" }];
  const result = streamText({ model: model(twin.fetch), messages, tools, stopWhen: isStepCount(3) });
  const steps = await result.steps;
  expect(steps.map(({ text }) => text)).toEqual([
    "I look at both places, 京都 and 大阪 😀.",
    "Three days, day by day.",
  ]);
  expect(seen).toEqual([{ place: "Kyoto", depth: { days: 3 } }, { place: "Osaka" }]);
  expect(steps[0]?.toolCalls.map(({ toolCallId }) => toolCallId)).toEqual([
    expect.stringMatching(/^call_[a-z0-9]{24}$/),
    "call_mine",
  ]);
  expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
  expect(steps[0]?.usage).toMatchObject({ inputTokens: 17, outputTokens: 9 });
  expect(steps[0]?.usage.inputTokenDetails.cacheReadTokens).toBe(5);
  expect(steps[0]?.usage.outputTokenDetails.reasoningTokens).toBe(4);
  expect(steps[1]?.usage.inputTokens).toBeGreaterThan(10);
});

test.each(clients)("[TWA10] %s reads a complete response", async (_, model) => {
  const twin = twinFetch(openaiChat, [look, { ...done, stopReason: "length" }]);
  const options = { prompt: "Plan", tools, stopWhen: isStepCount(3) };
  const { steps } = await generateText({ model: model(twin.fetch), ...options });
  expect(steps[0]?.toolCalls).toHaveLength(2);
  expect(steps[0]?.usage).toMatchObject({ inputTokens: 17, outputTokens: 9 });
  expect(steps[1]?.text).toBe("Three days, day by day.");
  expect(steps[1]?.finishReason).toBe("length");
});

test("[TWA10] the chunks are those of the server", () => {
  const body = { model: "gpt-5", messages: [{ role: "user", content: "x" }], stream: true };
  const events = (more: object) =>
    openaiChat.events(look, posted("/v1/chat/completions", { ...body, ...more }), countedIds());
  const chunks = events({ stream_options: { include_usage: true } });
  expect(chunks.every((each) => /^data: .*\n\n$/.test(each))).toBe(true);
  expect(chunks.at(-1)).toBe("data: [DONE]\n\n");
  const parsed = chunks.slice(0, -1).map((each) => JSON.parse(each.slice("data: ".length)));
  expect(new Set(parsed.map(({ id }) => id)).size).toBe(1);
  expect(parsed[0].choices[0].delta).toEqual({ role: "assistant", content: "", refusal: null });
  const deltas = parsed.flatMap(({ choices }) => choices).map(({ delta }) => delta);
  expect(deltas.filter(({ content }) => content).length).toBeGreaterThan(2);
  const called = deltas.flatMap(({ tool_calls: list }) => list ?? []);
  expect(called.filter(({ id }) => id).map(({ index, function: { name } }) => [index, name])).toEqual([
    [0, "look"],
    [1, "look"],
  ]);
  expect(called.filter(({ index, id }) => index === 0 && id === undefined).length).toBeGreaterThan(2);
  expect(parsed.at(-2).choices[0]).toMatchObject({ delta: {}, finish_reason: "tool_calls" });
  expect(parsed.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 17, total_tokens: 26 } });
  expect(parsed.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  expect(JSON.stringify(parsed)).not.toContain("Two places");
  expect(events({}).some((each) => each.includes('"usage"'))).toBe(false);
  expect(openaiChat.streams(posted("/", body))).toBe(true);
  expect(openaiChat.streams(posted("/", { ...body, stream: false }))).toBe(false);
});

test("[TWA10] a refusal reaches the client like the server's", async () => {
  const twin = twinFetch(openaiChat, [done], 1);
  const model = createOpenAI({ apiKey: "k", baseURL: "http://twin/v1", fetch: twin.fetch }).chat("gpt-5");
  const error = await generateText({ model, prompt: "a longer prompt" }).catch((thrown: unknown) => thrown);
  expect(APICallError.isInstance(error) && [error.statusCode, error.isRetryable]).toEqual([400, false]);
  expect(String(error)).toContain("This model's maximum context length is 1 tokens.");
});
