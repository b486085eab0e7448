import { afterEach, describe, expect, test, vi } from "vitest";
import { repetitions } from "../../../test/support/repetitions.ts";
import { speakers, toolNames } from "../../../test/transcript/conversation.ts";
import { transcriptOf } from "../../../test/transcript/generate.ts";
import { anySigner } from "../../../test/transcript/signer.ts";
import { twinSigner } from "../../../test/transcript/twin-signer.ts";
import type { ContextMessage } from "../../core/context.ts";
import { checkRequest, wireFormats } from "../../testing/server/check-request.ts";
import type { TranscriptMessage, TranscriptPolicy } from "../../transcript/contract.ts";
import { resolveTranscriptPolicy } from "../../transcript/policy.ts";
import { readReasoningItem } from "../../transcript/steps/normalize-thinking.ts";
import { prepareTranscript } from "../../transcript/steps/prepare-transcript.ts";
import { modelRequest } from "./model-request.ts";
import { captureWire, wireBody } from "./open-model.ts";

const policies = [
  ...speakers,
  { provider: "openai", api: "openai-completions", model: "gpt-4o" },
  { provider: "anthropic", api: "anthropic-messages", model: "claude-opus-5-5" },
].map((speaker) => resolveTranscriptPolicy(speaker));

const tools = toolNames.map((name) => ({ name, inputSchema: { type: "object", properties: {} } }));
const { wireRequests } = repetitions;
const system = "You plan journeys.";

async function wireOf(context: readonly ContextMessage[], policy: TranscriptPolicy, thinkingLevel: string) {
  const { messages } = await prepareTranscript(context, policy);
  const { options } = modelRequest({ transcript: messages, policy, system, tools, thinkingLevel });
  return { messages, ...(await captureWire(options, policy)) };
}

/** Returns every text in a body, including text nested inside JSON strings. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return /^[{[]/.test(value) ? [value, ...textsIn(parsed(value))] : [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the words in a transcript that must occur on the wire. */
function wordsOf(messages: readonly TranscriptMessage[], policy: TranscriptPolicy): string[] {
  return messages.flatMap((message) => {
    if (typeof message.content === "string") return [message.content];
    const own = message.role === "toolResult" ? [message.toolCallId] : [];
    return [...own, ...message.content.flatMap((block) => blockWords(block, policy))];
  });
}

function blockWords(block: TranscriptMessage["content"][number], { api }: TranscriptPolicy): string[] {
  if (typeof block === "string") return [block];
  switch (block.type) {
    case "text":
      return [block.text];
    case "image":
      return [block.data];
    case "toolCall":
      return [block.id, block.name, ...textsIn(block.arguments)];
    case "thinking": {
      const sealed = readReasoningItem(block.thinkingSignature)?.encrypted_content;
      if (api === "openai-responses") return sealed === undefined ? [] : [sealed];
      return [block.thinking, ...(block.thinkingSignature === undefined ? [] : [block.thinkingSignature])];
    }
  }
}

/** Warnings from a provider's package about parts that are sent anyway. */
const harmless = /^reasoning ["'].* mapped to |always uses adaptive|skip_thought_signature_validator/;

describe.each(policies)("requests to $provider/$model", (policy) => {
  test("[TR15] contain every text, call, result, image and signature of the transcript", async () => {
    for (let seed = 0; seed < wireRequests; seed++) {
      const { messages, body, warnings } = await wireOf(
        transcriptOf(seed, anySigner).messages,
        policy,
        "medium",
      );
      const texts = textsIn(body);
      const lost = wordsOf(messages, policy).filter((word) => !texts.some((text) => text.includes(word)));
      expect({ seed, lost }).toEqual({ seed, lost: [] });
      expect(JSON.stringify(body)).not.toContain('"skein"');
      expect({ seed, warnings: warnings.filter(({ note }) => !harmless.test(note)) }).toEqual({
        seed,
        warnings: [],
      });
    }
  });

  test.each(["off", "high"])(
    "[TR15] are accepted by the provider's strict twin, thinking %s",
    async (level) => {
      for (let seed = 0; seed < 2 * wireRequests; seed++) {
        const { messages: context } = transcriptOf(seed, twinSigner());
        const { url, headers, body } = await wireOf(context, policy, level);
        const { pathname, search } = new URL(url);
        const path = `${wireFormats[policy.api].basePath}${pathname.replace(/^\/v1/, "")}${search}`;
        const refusal = checkRequest(policy.api, { method: "POST", path, headers, body });
        expect({ seed, refusal }).toEqual({ seed, refusal: null });
      }
    },
  );

  const conversation: readonly ContextMessage[] = [
    { role: "user", content: "Plan three days." },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Let me look." },
        { type: "toolCall", id: "callA0001", name: "read", arguments: { path: "a" } },
        { type: "toolCall", id: "callA0002", name: "read", arguments: { path: "b" } },
      ],
    },
    { role: "toolResult", toolCallId: "callA0001", toolName: "read", content: [{ type: "text", text: "A" }] },
    { role: "toolResult", toolCallId: "callA0002", toolName: "read", content: [{ type: "text", text: "B" }] },
    { role: "assistant", content: [{ type: "text", text: "Day 1: gardens." }] },
    { role: "user", content: "Shorter, please." },
    { role: "assistant", content: [{ type: "text", text: "Gardens." }] },
    { role: "user", content: "And day 2?" },
  ];

  /** Returns the list of messages as text, without the cache marks, which move as the conversation grows. */
  function listOf(body: unknown): string {
    const { messages, contents, input } = body as Record<string, unknown[] | undefined>;
    const list = messages ?? contents ?? input ?? [];
    return JSON.stringify(list, (key, value: unknown) => (key === "cache_control" ? undefined : value));
  }

  test("[CNV8] start with the bytes of the previous request, and the rest of both is the same", async () => {
    const ends = [1, 4, 6, 8];
    const bodies = await Promise.all(
      ends.map(async (end) => (await wireOf(conversation.slice(0, end), policy, "off")).body),
    );
    for (const [index, body] of bodies.entries()) {
      const next = bodies[index + 1];
      if (next === undefined) break;
      // A list ends in `]`. The text before it must be a prefix of the next list.
      expect(listOf(next).startsWith(listOf(body).slice(0, -1))).toBe(true);
      const frame = (each: unknown) =>
        JSON.stringify({ ...(each as object), messages: 0, contents: 0, input: 0 });
      expect(frame(next)).toBe(frame(body));
    }
  });
});

describe("request bodies", () => {
  afterEach(() => vi.unstubAllGlobals());

  const policyOf = (provider: string, model: string, api?: string) =>
    resolveTranscriptPolicy({ provider, model, ...(api === undefined ? {} : { api }) });

  test("[XRW1] captures the body of a streamed call without sending it", async () => {
    const fetch = vi.fn(() => Promise.reject(new Error("it went out")));
    vi.stubGlobal("fetch", fetch);
    for (const policy of policies) {
      const { options } = modelRequest({ transcript: [{ role: "user", content: "Hello" }], policy });
      const body = (await wireBody(options, policy)) as Record<string, unknown>;
      expect(body.stream ?? "google").toBe(policy.api === "google-generative-ai" ? "google" : true);
      expect(JSON.stringify(body)).toContain("Hello");
    }
    expect(fetch).not.toHaveBeenCalled();
  });

  test("[TR15] results are text where possible, and one turn if a provider requires it", async () => {
    const calls = ["callA0001", "callA0002"].map((id) => ({
      type: "toolCall" as const,
      id,
      name: "read",
      arguments: {},
    }));
    const results = calls.map(({ id }, index) => ({
      role: "toolResult" as const,
      toolCallId: id,
      toolName: "read",
      content: [
        { type: "text" as const, text: "one" },
        { type: "text" as const, text: "two" },
      ],
      isError: index === 1,
    }));
    const transcript = [
      { role: "user" as const, content: "Go" },
      { role: "assistant" as const, content: calls },
      ...results,
    ];
    const bodyOf = (provider: string, model: string) => {
      const policy = policyOf(provider, model);
      return wireBody(modelRequest({ transcript, policy }).options, policy);
    };
    expect(await bodyOf("anthropic", "claude-sonnet-4-5")).toMatchObject({
      messages: [
        {},
        {},
        {
          content: [
            { tool_use_id: "callA0001", content: "one\ntwo" },
            { tool_use_id: "callA0002", content: "one\ntwo", is_error: true },
          ],
        },
      ],
    });
    expect(await bodyOf("google", "gemini-2.5-pro")).toMatchObject({
      contents: [
        {},
        {},
        {
          parts: [
            { functionResponse: { response: { content: "one\ntwo" } } },
            { functionResponse: { response: { error: "one\ntwo" } } },
          ],
        },
      ],
    });
    expect(await bodyOf("openai", "gpt-5")).toMatchObject({
      input: [{}, {}, {}, { output: "one\ntwo" }, { output: '{"error":"one\\ntwo"}' }],
    });
    expect(await bodyOf("mistral", "mistral-small-latest")).toMatchObject({
      messages: [{}, {}, { content: "one\ntwo" }, { content: "The tool failed: one\ntwo" }],
    });
    expect(await bodyOf("local", "qwen3")).toMatchObject({
      messages: [{}, {}, { content: "one\ntwo" }, { content: "The tool failed: one\ntwo" }],
    });
  });

  test("[TR15] a failure with an image is stated as text", async () => {
    const image = { type: "image" as const, data: "AQI=", mimeType: "image/png" };
    const call = { type: "toolCall" as const, id: "toolu_1", name: "shot", arguments: {} };
    const transcript: TranscriptMessage[] = [
      { role: "user", content: "Go" },
      { role: "assistant", content: [call] },
      { role: "toolResult", toolCallId: "toolu_1", toolName: "shot", content: [image], isError: true },
    ];
    const policy = policyOf("anthropic", "claude-sonnet-4-5");
    expect(await wireBody(modelRequest({ transcript, policy }).options, policy)).toMatchObject({
      messages: [{}, {}, { content: [{ content: [{ text: "The tool failed:" }, { type: "image" }] }] }],
    });
  });

  test("[TR15] two texts of an answer stay separate in a format that has only one", async () => {
    const transcript: TranscriptMessage[] = [
      { role: "assistant", content: ["First.", "Second."].map((text) => ({ type: "text", text })) },
      { role: "user", content: "Go on" },
    ];
    for (const [provider, model] of [
      ["local", "qwen3"],
      ["mistral", "mistral-small-latest"],
    ] as const) {
      const policy = policyOf(provider, model);
      expect(await wireBody(modelRequest({ transcript, policy }).options, policy)).toMatchObject({
        messages: [{ content: "First.\n\nSecond." }, {}],
      });
    }
  });
});
