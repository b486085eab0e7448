import { afterEach, describe, expect, test } from "vitest";
import type { ContextMessage } from "../../core/context.ts";
import type { Message } from "../../core/messages.ts";
import type { MessageDraft } from "../../core/seal.ts";
import { sealEntry } from "../../core/seal.ts";
import type { Twin } from "../../testing/server/start-twin.ts";
import { startTwin } from "../../testing/server/start-twin.ts";
import type { ScriptedReply } from "../../testing/twins/contract.ts";
import { resolveTranscriptPolicy } from "../../transcript/policy.ts";
import { prepareTranscript } from "../../transcript/steps/prepare-transcript.ts";
import { assistantMessageOf } from "./assistant-message.ts";
import { modelRequest } from "./model-request.ts";
import { openModel } from "./open-model.ts";

const twins: Twin[] = [];
afterEach(() => Promise.all(twins.splice(0).map((twin) => twin.close())));

const looks: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "The gardens first, then the food." },
    { type: "text", text: "I will look into both." },
    { type: "toolCall", name: "find", arguments: { what: "gardens" } },
    { type: "toolCall", name: "find", arguments: { what: "food" } },
  ],
  usage: { input: 100, cacheRead: 20, output: 50, reasoning: 10 },
};
const concludes: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "That is enough." },
    { type: "text", text: "Three days will do." },
  ],
};

/** The value as read back from disk. */
function written(message: MessageDraft): Exclude<Message, { role: "system" }> {
  const { entry } = sealEntry({ type: "message", message }, { id: "e", parentId: null, time: 1 });
  return (entry as unknown as { message: Exclude<Message, { role: "system" }> }).message;
}

describe.each([
  ["anthropic", "claude-sonnet-4-5"],
  ["google", "gemini-2.5-pro"],
  ["google", "gemini-3-pro-preview"],
  ["openai", "gpt-5"],
  ["local", "qwen3"],
  ["mistral", "magistral-medium-latest"],
] as const)("a conversation with the strict twin of %s/%s", (provider, model) => {
  test("signed parts are read, stored in a file, and accepted again at every step", async () => {
    const policy = resolveTranscriptPolicy({ provider, model });
    const { api } = policy;
    const twin = await startTwin({ api, replies: [looks, concludes, looks] });
    twins.push(twin);
    const asked = await openModel({ provider, model, api }, { apiKey: "any", baseUrl: twin.url });
    const tools = [
      { name: "find", inputSchema: { type: "object", properties: { what: { type: "string" } } } },
    ];
    const session: ContextMessage[] = [{ role: "user", content: "Plan three days." }];
    for (const step of [0, 1, 2]) {
      const { messages } = await prepareTranscript(session, policy);
      const { options } = modelRequest({ transcript: messages, policy, tools, thinkingLevel: "low" });
      const { content, ...facts } = await asked.doGenerate(options);
      const answer = written(assistantMessageOf(content, facts, { provider, api, model, timestamp: 1 }));
      session.push(answer);
      if (answer.role !== "assistant") throw new Error("no answer");
      const calls = answer.content.filter((block) => block.type === "toolCall");
      expect([step, answer.stopReason, calls.length]).toEqual(
        step === 1 ? [1, "stop", 0] : [step, "toolUse", 2],
      );
      if (step === 0) {
        expect(answer.usage).toMatchObject({ input: 100, cacheRead: 20, output: 50, totalTokens: 170 });
        expect(calls.map((block) => block.arguments)).toEqual([{ what: "gardens" }, { what: "food" }]);
      }
      for (const { id, name } of calls) {
        const text = { type: "text" as const, text: "Some." };
        session.push({ role: "toolResult", toolCallId: id, toolName: name, content: [text], isError: false });
      }
      if (step === 1) session.push({ role: "user", content: "And now?" });
    }
    expect(twin.requests.map(({ refusal }) => refusal)).toEqual([null, null, null]);
    // Each of the three answers is sent again, with its signature if the provider signs answers.
    const { messages } = await prepareTranscript(session, policy);
    const signed = messages.filter(
      (message) => message.role === "assistant" && /"\w+Signature":"\S{8}/.test(JSON.stringify(message)),
    );
    expect(signed.length).toBe(["anthropic", "google", "openai"].includes(provider) ? 3 : 0);
  });
});
