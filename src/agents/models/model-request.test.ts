import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyTranscript } from "../../../test/support/sdk-arbitraries.ts";
import type { AssistantMessage } from "../../core/messages.ts";
import type { TranscriptMessage } from "../../transcript/contract.ts";
import { resolveTranscriptPolicy } from "../../transcript/policy.ts";
import type { ModelRequestInput } from "./model-request.ts";
import { modelRequest } from "./model-request.ts";
import { captureWire } from "./open-model.ts";

const hello: readonly TranscriptMessage[] = [{ role: "user", content: "Hello" }];
const tools = ["read", "write"].map((name) => ({ name, inputSchema: { type: "object" } }));

function request(name: string, input: Partial<ModelRequestInput> = {}) {
  const [provider = "", model = "", api] = name.split(" ");
  const policy = resolveTranscriptPolicy({ provider, model, ...(api === undefined ? {} : { api }) });
  const { options, changes } = modelRequest({ transcript: hello, policy, ...input });
  return { options, policy, kinds: changes.map(({ kind }) => kind) };
}

async function bodyOf(
  name: string,
  input: Partial<ModelRequestInput> = {},
): Promise<Record<string, unknown>> {
  const { options, policy } = request(name, input);
  return (await captureWire(options, policy)).body as Record<string, unknown>;
}

/** Returns the fields of a value that another value has too. A missing field is `undefined`. */
function asIn(pattern: object, value: unknown): object {
  const fields = Object.entries(pattern).map(([key, inner]: [string, unknown]) => {
    const found: unknown = Reflect.get(Object(value), key);
    return [key, typeof inner === "object" && inner !== null ? asIn(inner, found) : found];
  });
  return Object.fromEntries(fields);
}

/** Returns the indexes of the messages in a prompt that have a cache mark. */
function marksIn({ prompt, tools: offered }: LanguageModelV4CallOptions): string[] {
  const places: string[] = [];
  const look = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === "cacheControl" || key === "cache_control") places.push(place);
      else look(inner, key === "providerOptions" || key === "anthropic" ? place : `${place}/${key}`);
    }
  };
  look(prompt, "prompt");
  look(offered, "tools");
  return places;
}

describe("a request to a model", () => {
  test.each<[string, string, object]>([
    ["anthropic claude-sonnet-4-5", "off", { max_tokens: 16_384, thinking: undefined }],
    [
      "anthropic claude-sonnet-4-5",
      "low",
      { max_tokens: 18_432, thinking: { type: "enabled", budget_tokens: 2048 } },
    ],
    ["anthropic claude-opus-4-1", "max", { max_tokens: 32_000, thinking: { budget_tokens: 24_576 } }],
    [
      "anthropic claude-opus-4-8",
      "high",
      { thinking: { type: "adaptive" }, output_config: { effort: "high" } },
    ],
    ["proxy claude-sonnet-4-5 anthropic-messages", "low", { thinking: { budget_tokens: 2048 } }],
    ["proxy claude-x anthropic-messages", "low", { thinking: { type: "adaptive" } }],
    ["anthropic claude-opus-4-8", "off", { thinking: { type: "disabled" } }],
    ["anthropic claude-3-5-haiku-latest", "high", { max_tokens: 8192, thinking: undefined }],
    [
      "openai gpt-5",
      "medium",
      { reasoning: { effort: "medium", summary: "auto" }, max_output_tokens: 24_576 },
    ],
    ["openai gpt-5", "off", { reasoning: { effort: "minimal" }, max_output_tokens: 16_384 }],
    ["openai gpt-4o", "high", { reasoning: undefined, include: undefined, max_output_tokens: 16_384 }],
    ["openai gpt-5 openai-completions", "high", { reasoning_effort: "high", max_completion_tokens: 32_768 }],
    [
      "google gemini-2.5-flash",
      "low",
      {
        generationConfig: {
          maxOutputTokens: 18_432,
          thinkingConfig: { thinkingBudget: 2048, includeThoughts: true },
        },
      },
    ],
    ["google gemini-2.5-flash", "off", { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }],
    [
      "google gemini-3-pro-preview",
      "high",
      { generationConfig: { thinkingConfig: { thinkingLevel: "high" } } },
    ],
    [
      "google gemini-2.0-flash",
      "high",
      { generationConfig: { maxOutputTokens: 8192, thinkingConfig: undefined } },
    ],
    ["mistral magistral-medium-latest", "high", { reasoning_effort: undefined, max_tokens: 32_768 }],
    ["mistral mistral-small-latest", "low", { reasoning_effort: "high" }],
    ["mistral codestral-latest", "off", { reasoning_effort: undefined, max_tokens: 16_384 }],
    ["local qwen3", "off", { reasoning_effort: undefined, max_tokens: 4096 }],
    ["local qwen3", "high", { reasoning_effort: "high", max_tokens: 4096 }],
  ])("%s thinks %s in the provider's format, with a limit", async (name, thinkingLevel, expected) => {
    expect(asIn(expected, await bodyOf(name, { thinkingLevel }))).toEqual(expected);
  });

  const left = ["thinking_left_on"];
  const moved = ["thinking_level_changed"];
  test.each<[string, string, string | undefined, string[]]>([
    ["o1", "off", undefined, left],
    ["o1-mini", "off", undefined, left],
    ["o1-mini", "high", undefined, moved],
    ["o3", "minimal", "low", moved],
    ["o3-mini", "off", undefined, left],
    ["o4-mini", "max", "high", moved],
    ["gpt-5", "off", "minimal", []],
    ["gpt-5", "minimal", "minimal", []],
    ["gpt-5", "xhigh", "high", moved],
    ["gpt-5-pro", "off", undefined, left],
    ["gpt-5-pro", "low", "high", moved],
    ["gpt-5-codex", "off", undefined, left],
    ["gpt-5.1", "off", "none", []],
    ["gpt-5.1", "minimal", "low", moved],
    ["gpt-5.1-chat-latest", "off", undefined, left],
    ["gpt-5.1-chat-latest", "high", "medium", moved],
    ["gpt-5.1-codex", "off", undefined, left],
    ["gpt-5.2", "max", "xhigh", moved],
    ["gpt-5.4-pro", "low", "medium", moved],
    ["gpt-5.6", "max", "max", []],
  ])("[CNV13] %s at %s is sent %s", async (model, thinkingLevel, effort, told) => {
    for (const api of ["openai-responses", "openai-completions"]) {
      const name = `openai ${model} ${api}`;
      expect(request(name, { thinkingLevel }).kinds).toEqual(told);
      const body = await bodyOf(name, { thinkingLevel });
      const { effort: own } = Object(body.reasoning) as { effort?: unknown };
      const sent = api === "openai-responses" ? own : body.reasoning_effort;
      // OpenAI's package does not support the highest effort for chat completions.
      expect(sent).toBe(effort === "max" && api === "openai-completions" ? "xhigh" : effort);
    }
  });

  test.each<[string, string, string | undefined, string[]]>([
    ["magistral-medium-latest", "off", undefined, left],
    ["magistral-medium-latest", "high", undefined, moved],
    ["mistral-small-latest", "off", "none", []],
    ["mistral-medium-latest", "low", "high", moved],
    ["mistral-small-2506", "off", undefined, []],
  ])("[CNV13] Mistral's %s at %s is sent %s", async (model, thinkingLevel, effort, told) => {
    expect(request(`mistral ${model}`, { thinkingLevel }).kinds).toEqual(told);
    expect((await bodyOf(`mistral ${model}`, { thinkingLevel })).reasoning_effort).toBe(effort);
  });

  test("Responses requests are not stored, and their reasoning is returned encrypted", async () => {
    expect(await bodyOf("openai gpt-5")).toMatchObject({
      store: false,
      include: ["reasoning.encrypted_content"],
    });
    expect(await bodyOf("openai gpt-4o")).toMatchObject({ store: false });
  });

  test("a given limit is used, and an unsupported level is reported", () => {
    expect(request("openai gpt-4o", { maxOutputTokens: 100 }).options.maxOutputTokens).toBe(100);
    expect(request("openai gpt-4o", { thinkingLevel: "high" }).kinds).toEqual(["thinking_not_supported"]);
    expect(request("openai gpt-5", { thinkingLevel: "huge" }).kinds).toEqual(["thinking_level_unknown"]);
    expect(request("openai gpt-5", { thinkingLevel: "low" }).kinds).toEqual([]);
  });

  test("tools are sent with their schemas; without tools there is no list", async () => {
    expect(await bodyOf("openai gpt-5", { tools })).toMatchObject({
      tools: [{ name: "read" }, { name: "write" }],
    });
    expect(await bodyOf("openai gpt-5")).not.toHaveProperty("tools");
    expect(await bodyOf("anthropic claude-sonnet-4-5", { system: " \n" })).not.toHaveProperty("system");
  });

  test("half surrogate pairs are repaired, and blank content is left out", async () => {
    const half = "a\ud800b";
    const offered = [
      { name: "read", description: half, inputSchema: { type: "object", description: half } },
      { name: "write", description: " ", inputSchema: { type: "object" } },
    ];
    for (const name of [
      "anthropic claude-sonnet-4-5",
      "openai gpt-5",
      "google gemini-2.5-pro",
      "local qwen3",
    ]) {
      const text = JSON.stringify(await bodyOf(name, { system: half, tools: offered }));
      expect(text).toContain("a\ufffdb");
      expect(text).not.toContain("\\ud800");
      expect(text).not.toContain('"description":" "');
      expect(request(name, { system: " \n" }).options.prompt[0]?.role).toBe("user");
    }
  });

  test.each<[string, Partial<ModelRequestInput>, number]>([
    ["openai gpt-5", { maxOutputTokens: 1 }, 16],
    ["openai gpt-5 openai-completions", { maxOutputTokens: 1 }, 1],
    ["anthropic claude-sonnet-4-5", { maxOutputTokens: 1 }, 1],
    ["openai gpt-4-0613", { info: { contextWindow: 8192, maxOutput: 8192 } }, 4096],
    ["local qwen3", { info: { contextWindow: 2048 } }, 1024],
    ["local qwen3", { info: { contextWindow: 2048 }, thinkingLevel: "high" }, 1024],
    ["local qwen3", { info: { contextWindow: 2048 }, maxOutputTokens: 2048 }, 1024],
    ["local qwen3", { info: { contextWindow: 1 } }, 1],
  ])("%s with %j has a limit that leaves room for the prompt", (name, input, limit) => {
    expect(request(name, input).options.maxOutputTokens).toBe(limit);
  });

  test("calls without known tools are reported", () => {
    const calls: TranscriptMessage[] = [
      ...hello,
      { role: "assistant", content: [{ type: "toolCall", id: "toolu_1", name: "read", arguments: {} }] },
      { role: "toolResult", toolCallId: "toolu_1", content: [{ type: "text", text: "x" }] },
    ];
    expect(request("anthropic claude-sonnet-4-5", { transcript: calls }).kinds).toEqual(["tools_unknown"]);
    expect(request("anthropic claude-sonnet-4-5", { transcript: calls, tools }).kinds).toEqual([]);
    expect(request("anthropic claude-sonnet-4-5").kinds).toEqual([]);
  });

  const thought = { type: "thinking" as const, thinking: "hm", thinkingSignature: "c2ln" };
  const call = (id: string) => ({ type: "toolCall" as const, id, name: "read", arguments: {} });
  const answer = (...content: AssistantMessage["content"]): TranscriptMessage => ({
    role: "assistant",
    content,
  });
  const result = (toolCallId: string): TranscriptMessage => ({
    role: "toolResult",
    toolCallId,
    toolName: "read",
    content: [{ type: "text", text: "x" }],
  });
  const user: TranscriptMessage = { role: "user", content: "Go" };

  test.each<[string, readonly TranscriptMessage[], boolean]>([
    ["no answer yet", [user], true],
    ["an answered turn without thinking", [user, answer({ type: "text", text: "Yes" }), user], true],
    ["a turn that began with thinking", [user, answer(thought, call("a")), result("a")], true],
    [
      "one that continues without thinking",
      [user, answer(thought, call("a")), result("a"), answer(call("b")), result("b")],
      true,
    ],
    ["one that began without thinking", [user, answer(call("a")), result("a")], false],
    [
      "one that began without thinking and continued with it",
      [user, answer(call("a")), result("a"), answer(thought, call("b")), result("b")],
      false,
    ],
    [
      "one that began with a text",
      [user, answer({ type: "text", text: "Hm" }, thought, call("a")), result("a")],
      false,
    ],
    ["user text after results", [user, answer(call("a")), result("a"), user], false],
    [
      "an older turn without thinking",
      [
        user,
        answer(call("a")),
        result("a"),
        answer({ type: "text", text: "Yes" }),
        user,
        answer(thought, call("b")),
        result("b"),
      ],
      true,
    ],
  ])("whether Anthropic gets a thinking budget: %s", (_, transcript, thinks) => {
    const { options, kinds } = request("anthropic claude-sonnet-4-5", {
      transcript,
      tools,
      thinkingLevel: "low",
    });
    expect(options.providerOptions?.anthropic?.thinking !== undefined).toBe(thinks);
    expect(kinds).toEqual(thinks ? [] : ["thinking_switched_off"]);
    expect(
      request("proxy claude-x anthropic-messages", { transcript, tools, thinkingLevel: "low" }).kinds,
    ).toEqual(kinds);
    expect(request("anthropic claude-opus-5-5", { transcript, thinkingLevel: "low" }).options.reasoning).toBe(
      "low",
    );
    expect(request("google gemini-2.5-pro", { transcript, thinkingLevel: "low" }).options.reasoning).toBe(
      "low",
    );
  });

  test("thinking is not disabled in a turn that began with it", () => {
    const transcript = [user, answer(thought, call("a")), result("a")];
    const { options, kinds } = request("anthropic claude-opus-4-8", { transcript, tools });
    expect([options.reasoning, kinds]).toEqual([undefined, ["thinking_left_on"]]);
    expect(request("anthropic claude-opus-4-8").options.reasoning).toBe("none");
    expect(request("anthropic claude-sonnet-4-5", { transcript, tools }).kinds).toEqual([]);
  });

  test("cache marks are set on the system prompt and on the last two user messages of the API", () => {
    const transcript = [
      user,
      answer(call("a")),
      result("a"),
      user,
      answer(call("b")),
      result("b"),
      result("c"),
    ];
    const { options } = request("anthropic claude-sonnet-4-5", { transcript, system: "Be brief.", tools });
    expect(options.prompt.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "user",
      "assistant",
      "tool",
    ]);
    expect(marksIn(options)).toEqual(["prompt/0", "prompt/4", "prompt/6"]);
    expect(marksIn(request("anthropic claude-sonnet-4-5", { tools }).options)).toEqual([
      "prompt/0",
      "tools/1",
    ]);
    expect(marksIn(request("openai gpt-5", { tools, system: "Be brief." }).options)).toEqual([]);
  });

  test("sets at most four cache marks, whatever marks the messages contain", async () => {
    const mark = { anthropic: { cacheControl: { type: "ephemeral" } } };
    const note = { skein: { providerMetadata: mark } };
    await fc.assert(
      fc.asyncProperty(anyTranscript, async (messages) => {
        const marked = messages.map((message) => ({ ...message, ...note }));
        const transcript = [
          { role: "user" as const, content: [{ type: "text" as const, text: "Go", ...note }] },
          ...(marked as TranscriptMessage[]),
        ];
        const { options, policy } = request("anthropic claude-sonnet-4-5", {
          transcript,
          system: "S",
          tools,
        });
        expect(marksIn(options).length).toBeLessThanOrEqual(3);
        const { body } = await captureWire(options, policy);
        expect(JSON.stringify(body).split('"cache_control"').length - 1).toBeLessThanOrEqual(3);
      }),
      { numRuns: 100 },
    );
  });
});
