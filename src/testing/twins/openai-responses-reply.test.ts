import { createOpenAI } from "@ai-sdk/openai";
import type { ModelMessage } from "ai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { expect, test } from "vitest";
import { countedIds, posted, twinFetch } from "../../../test/support/twin-fetch.ts";
import { wireFormats } from "../server/check-request.ts";
import type { ScriptedReply } from "./contract.ts";

const openaiResponses = wireFormats["openai-responses"];

const look: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "Two places, two looks." },
    { type: "text", text: "I look at both places." },
    { type: "toolCall", name: "look", arguments: { place: "Kyoto" } },
    { type: "toolCall", name: "look", arguments: { place: "Osaka" } },
  ],
  usage: { input: 10, output: 9, cacheRead: 5, cacheWrite: 2, reasoning: 4 },
};
const done: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "", redacted: true },
    { type: "text", text: "Three days, day by day." },
  ],
};

const tools = {
  look: tool({
    inputSchema: jsonSchema<{ place: string }>({ type: "object", properties: { place: { type: "string" } } }),
    execute: async ({ place }) => `temples of ${place}`,
  }),
};
const stateless = { openai: { store: false, reasoningSummary: "auto" } };
const modelFor = (fetch: typeof globalThis.fetch) =>
  createOpenAI({ apiKey: "k", baseURL: "http://twin/v1", fetch }).responses("gpt-5");

test("[TWA10] the AI SDK reads the stream, and sends the reasoning back unchanged", async () => {
  const twin = twinFetch(openaiResponses, [look, done, done]);
  const model = modelFor(twin.fetch);
  const messages: ModelMessage[] = [{ role: "user", content: "Plan three days" }];
  const options = { model, tools, providerOptions: stateless, stopWhen: isStepCount(3) };
  const result = streamText({ ...options, messages });
  const steps = await result.steps;
  expect(steps.map(({ text }) => text)).toEqual(["I look at both places.", "Three days, day by day."]);
  expect(steps[0]?.reasoningText).toBe("Two places, two looks.");
  expect(steps[0]?.toolResults.map(({ output }) => output)).toEqual(["temples of Kyoto", "temples of Osaka"]);
  expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
  expect(steps[0]?.usage).toMatchObject({ inputTokens: 17, outputTokens: 9 });
  expect(steps[0]?.usage.inputTokenDetails).toMatchObject({ cacheReadTokens: 5, cacheWriteTokens: 2 });
  expect(steps[0]?.usage.outputTokenDetails.reasoningTokens).toBe(4);

  const answered = await result.responseMessages;
  const next: ModelMessage[] = [...messages, ...answered, { role: "user", content: "And then?" }];
  expect(await streamText({ ...options, messages: next }).text).toBe("Three days, day by day.");
  const { input } = twin.bodies.at(-1) as { input: { type?: string; encrypted_content?: string }[] };
  const kinds = ["reasoning", undefined, "function_call", "function_call"];
  const results = ["function_call_output", "function_call_output"];
  expect(input.map(({ type }) => type)).toEqual([
    undefined,
    ...kinds,
    ...results,
    "reasoning",
    undefined,
    undefined,
  ]);
});

test("[TWA10] without `store: false` the AI SDK refers to items, which are not stored", async () => {
  const twin = twinFetch(openaiResponses, [look, done]);
  const options = { model: modelFor(twin.fetch), prompt: "Plan", tools, stopWhen: isStepCount(3) };
  const error = await generateText({ ...options, maxRetries: 0 }).catch((thrown: unknown) => thrown);
  expect(String(error)).toMatch(/Item with id 'rs_[a-z0-9]+' not found\./);
});

test("[TWA10] the AI SDK reads a complete response", async () => {
  const twin = twinFetch(openaiResponses, [look, { ...done, stopReason: "length" }]);
  const { steps } = await generateText({
    model: modelFor(twin.fetch),
    prompt: "Plan",
    tools,
    providerOptions: stateless,
    stopWhen: isStepCount(3),
  });
  expect(steps[0]?.reasoningText).toBe("Two places, two looks.");
  expect(steps[0]?.toolCalls).toHaveLength(2);
  expect(steps[1]?.finishReason).toBe("length");
});

const request = (more: object = {}) =>
  posted("/v1/responses", { model: "gpt-5", input: "x", stream: true, ...more });

test("[TWA10] the events are those of the server, in its order", () => {
  const asked = request({ include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" } });
  const events = openaiResponses.events(look, asked, countedIds());
  const parsed = events.map((each) => {
    const [, name, data] = /^event: (.*)\ndata: (.*)\n\n$/.exec(each) ?? [];
    return { name, data: JSON.parse(data ?? "") };
  });
  expect(parsed.map(({ data }) => data.sequence_number)).toEqual(parsed.map((_, index) => index));
  expect(parsed.every(({ name, data }) => name === data.type)).toBe(true);
  const names = parsed.map(({ name }) => name?.replace("response.", ""));
  expect(names.filter((name, index) => name !== names[index - 1])).toEqual([
    "created",
    "in_progress",
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
    "output_item.done",
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
    ...[
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
    ],
    ...[
      "output_item.added",
      "function_call_arguments.delta",
      "function_call_arguments.done",
      "output_item.done",
    ],
    "completed",
  ]);
  const begun = parsed
    .filter(({ name }) => name === "response.output_item.added")
    .map(({ data }) => data.item);
  expect(begun[0]).toMatchObject({ type: "reasoning", summary: [], encrypted_content: expect.any(String) });
  expect(begun[1]).toMatchObject({ type: "message", status: "in_progress", content: [] });
  expect(begun[2]).toMatchObject({ type: "function_call", status: "in_progress", arguments: "" });
  const { output, usage } = parsed.at(-1)?.data.response ?? {};
  expect(output.map(({ type }: { type: string }) => type)).toEqual([
    "reasoning",
    "message",
    "function_call",
    "function_call",
  ]);
  expect(usage).toMatchObject({ input_tokens: 17, output_tokens: 9, total_tokens: 26 });
});

test("[TWA10] summaries and encrypted content are sent only on request", () => {
  const answer = (more: object) => JSON.stringify(openaiResponses.answer(look, request(more), countedIds()));
  expect(answer({})).not.toMatch(/Two places|encrypted_content/);
  expect(answer({ reasoning: { summary: "auto" } })).toContain("Two places");
  expect(answer({ include: ["reasoning.encrypted_content"] })).toContain("encrypted_content");
});

test("[TWA10] a truncated answer is incomplete", () => {
  const cut: ScriptedReply = { ...done, stopReason: "length" };
  expect(openaiResponses.events(cut, request(), countedIds()).at(-1)).toContain("event: response.incomplete");
  expect(openaiResponses.answer(cut, request(), countedIds())).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
  });
});
