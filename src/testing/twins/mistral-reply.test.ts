import { createMistral } from "@ai-sdk/mistral";
import type { ModelMessage } from "ai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { expect, test } from "vitest";
import { countedIds, posted, twinFetch } from "../../../test/support/twin-fetch.ts";
import { wireFormats } from "../server/check-request.ts";
import type { ScriptedReply } from "./contract.ts";

const mistral = wireFormats["mistral-conversations"];

const look: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "Two places, two looks." },
    { type: "text", text: "I look at both places." },
    { type: "toolCall", name: "look", arguments: { place: "Kyoto" } },
    { type: "toolCall", name: "look", arguments: { place: "Osaka" } },
  ],
  usage: { input: 10, output: 9, cacheRead: 5 },
};
const done: ScriptedReply = { content: [{ type: "text", text: "Three days, day by day." }] };

const tools = {
  look: tool({
    inputSchema: jsonSchema<{ place: string }>({ type: "object", properties: { place: { type: "string" } } }),
    execute: async ({ place }) => `temples of ${place}`,
  }),
};
const modelFor = (fetch: typeof globalThis.fetch) =>
  createMistral({ apiKey: "k", baseURL: "http://twin/v1", fetch })("magistral-medium-latest");

test("[TWA10] the AI SDK reads the stream, and its next request is accepted", async () => {
  const twin = twinFetch(mistral, [look, done, done]);
  const options = { model: modelFor(twin.fetch), tools, stopWhen: isStepCount(3) };
  const messages: ModelMessage[] = [{ role: "user", content: "Plan three days" }];
  const result = streamText({ ...options, messages });
  const steps = await result.steps;
  expect(steps.map(({ text }) => text)).toEqual(["I look at both places.", "Three days, day by day."]);
  expect(steps[0]?.reasoningText).toBe("Two places, two looks.");
  expect(steps[0]?.toolResults.map(({ output }) => output)).toEqual(["temples of Kyoto", "temples of Osaka"]);
  expect(steps[0]?.toolCalls.every(({ toolCallId }) => /^[a-zA-Z0-9]{9}$/.test(toolCallId))).toBe(true);
  expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
  expect(steps[0]?.usage).toMatchObject({ inputTokens: 15, outputTokens: 9 });
  expect(steps[0]?.usage.inputTokenDetails.cacheReadTokens).toBe(5);

  const answered = await result.responseMessages;
  const next: ModelMessage[] = [...messages, ...answered, { role: "user", content: "And then?" }];
  expect(await streamText({ ...options, messages: next }).text).toBe("Three days, day by day.");
  expect(JSON.stringify(twin.bodies.at(-1))).toContain('{"type":"thinking","thinking":[{"type":"text"');
});

test("[TWA10] the AI SDK reads a complete response", async () => {
  const twin = twinFetch(mistral, [look, { ...done, stopReason: "length" }]);
  const options = { model: modelFor(twin.fetch), prompt: "Plan", tools, stopWhen: isStepCount(3) };
  const { steps } = await generateText(options);
  expect(steps[0]?.reasoningText).toBe("Two places, two looks.");
  expect(steps[0]?.text).toBe("I look at both places.");
  expect(steps[0]?.toolCalls).toHaveLength(2);
  expect(steps[1]?.finishReason).toBe("length");
});

test("[TWA10] the chunks are those of the server: complete calls, with the finish reason and the usage", () => {
  const body = { model: "m", messages: [{ role: "user", content: "x" }], stream: true };
  const events = (reply: ScriptedReply) => mistral.events(reply, posted("/", body), countedIds());
  const chunks = events(look);
  expect(chunks.at(-1)).toBe("data: [DONE]\n\n");
  const parsed = chunks.slice(0, -1).map((each) => JSON.parse(each.slice("data: ".length)));
  const deltas = parsed.map(({ choices }) => choices[0].delta);
  expect(deltas[0]).toEqual({ role: "assistant", content: "" });
  expect(deltas[1].content[0]).toMatchObject({ type: "thinking", thinking: [{ type: "text" }] });
  const turn = deltas.findIndex(({ content }) => content?.[0]?.closed === true);
  expect(deltas[turn].content).toEqual([
    { type: "thinking", thinking: [], closed: true },
    { type: "text", text: "I lo" },
  ]);
  expect(typeof deltas[turn + 1].content).toBe("string");
  expect(parsed.at(-1)).toMatchObject({
    choices: [
      {
        finish_reason: "tool_calls",
        delta: {
          tool_calls: [
            { index: 0, type: "function", function: { name: "look", arguments: '{"place":"Kyoto"}' } },
            { index: 1, type: "function", function: { name: "look", arguments: '{"place":"Osaka"}' } },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 15, completion_tokens: 9, total_tokens: 24 },
  });
  expect(parsed.slice(0, -1).some(({ usage }) => usage !== undefined)).toBe(false);
  expect(events(done)[1]).toContain('"delta":{"content":"Thre"}');
  expect(events(done).at(-2)).toContain('"delta":{"content":""},"finish_reason":"stop"');
});

test("[TWA10] the AI SDK reports a refusal in the server's words", async () => {
  const twin = twinFetch(mistral, [done], 1);
  const model = modelFor(twin.fetch);
  const error = await generateText({ model, prompt: "Plan all" }).catch((thrown: unknown) => thrown);
  expect(String(error)).toMatch(/Prompt contains \d+ tokens and 0 draft tokens, too large for model/);
});
