import { writeFileSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { Skein, ToolDefinition, TurnEvent } from "../../src/index.ts";
import { createSkein, defineAgent, defineTool } from "../../src/index.ts";
import type { StandIn, StandInReply, StandInRequest } from "../support/provider-stand-in.ts";
import { goodSummary, startStandIn } from "../support/provider-stand-in.ts";
import { assistantMessage } from "../support/session-text.ts";
import { estimateTokens, textOf } from "../support/text.ts";

let home: TemporaryFolder;
let standIn: StandIn | null = null;
let skein: Skein | null = null;

beforeEach(() => {
  home = temporaryFolder();
});
afterEach(async () => {
  await skein?.close();
  await standIn?.close();
  skein = null;
  standIn = null;
  home.remove();
});

/** A Skein instance whose model provider is the stand-in. The configured window is far larger than the real one. */
async function openSkein(
  reply: (request: StandInRequest, index: number) => StandInReply,
  {
    format = "openai",
    tools = [],
    window = 200_000,
    pruning = "off",
  }: {
    readonly format?: "openai" | "google";
    readonly tools?: readonly ToolDefinition[];
    readonly window?: number;
    readonly pruning?: "off" | "cache-ttl";
  } = {},
): Promise<{ skein: Skein; standIn: StandIn }> {
  standIn = await startStandIn(format, reply);
  const config = join(home.path, "skein.yaml");
  const type = format === "google" ? "google" : "openai-compatible";
  writeFileSync(
    config,
    `models: { providers: { desk: { type: ${type}, baseUrl: "${standIn.url}", apiKey: any-key-at-all, models: { m: { contextWindow: ${window} } } } } }\ncontextPruning: { mode: "${pruning}" }\n`,
  );
  const agent = defineAgent({ id: "main", model: "desk/m", tools: [...tools] });
  skein = await createSkein({ memory: true, config, env: {}, agents: [agent], quiet: true });
  return { skein, standIn };
}

const words = (turn: number) =>
  `Part ${turn}. ${`The gardens of Kyoto in November, number ${turn}. `.repeat(60)}`;

async function sendParts(skein: Skein, count: number): Promise<void> {
  for (let turn = 1; turn <= count; turn++) await skein.session({ sessionId: "s" }).send(words(turn)).result;
}

/** Writes turns that were never sent to the model, as an import would. */
async function appendTurns(skein: Skein, texts: readonly string[]): Promise<void> {
  await skein.session({ sessionId: "s" }).send("Hello").result;
  const answer = {
    role: "assistant" as const,
    content: [{ type: "text" as const, text: "Noted." }],
    api: "openai-completions",
    provider: "elsewhere",
    model: "m",
    usage: {
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason: "stop" as const,
    timestamp: 1,
  };
  const items = texts.flatMap((content) => [
    { draft: { type: "message" as const, message: { role: "user" as const, content, timestamp: 1 } } },
    { draft: { type: "message" as const, message: answer } },
  ]);
  await skein.store.sessions.append({ agentId: "main" }, "s", items);
}

/** Sends one message. Returns the outcome and all events along the way. */
async function sendAndWatch(skein: Skein, message: string) {
  const turn = skein.session({ sessionId: "s" }).send(message);
  const events: TurnEvent[] = [];
  for await (const event of turn) events.push(event);
  const result = await turn.result.catch((error: unknown) => error as Error & { code: string });
  const measures = events.filter((event) => event.type === "compaction");
  return { result, events, measures };
}

type Wording = readonly [provider: string, status: number, body: unknown, words: string];

const wordings: readonly Wording[] = [
  [
    "LM Studio, kept tokens",
    400,
    {
      error:
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input",
    },
    "tokens to keep from the initial prompt is greater than the context length",
  ],
  [
    "LM Studio, overflowing context",
    400,
    {
      error:
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    },
    "the model is loaded with context length of only 4096 tokens",
  ],
  [
    "xAI",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    "maximum prompt length is 131072",
  ],
  [
    "Groq",
    400,
    {
      error: {
        message: "Please reduce the length of the messages or completion.",
        type: "invalid_request_error",
        param: "messages",
      },
    },
    "Please reduce the length of the messages or completion",
  ],
  [
    "Groq, more than a minute's tokens in one request",
    413,
    {
      error: {
        message:
          "Request too large for model `llama-3.3-70b-versatile` on tokens per minute (TPM): Limit 6000, Requested 8011, please reduce your message size and try again.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    },
    "please reduce your message size",
  ],
  [
    "Bedrock",
    400,
    { message: "Input is too long for requested model." },
    "Input is too long for requested model",
  ],
  [
    "Bedrock, with the model's own text",
    400,
    {
      message:
        "The model returned the following errors: input length and `max_tokens` exceed context limit: 198000 + 8192 > 200000",
    },
    "exceed context limit: 198000 + 8192 > 200000",
  ],
  [
    "Kimi",
    400,
    {
      error: {
        message: "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        type: "invalid_request_error",
      },
    },
    "exceeded model token limit: 262144",
  ],
  [
    "MiniMax",
    400,
    {
      type: "error",
      error: {
        type: "bad_request_error",
        message: "invalid params, context window exceeds limit (2013)",
        http_code: "400",
      },
    },
    "context window exceeds limit (2013)",
  ],
  [
    "MiniMax, native shape",
    400,
    { base_resp: { status_code: 2013, status_msg: "invalid params, context window exceeds limit" } },
    "context window exceeds limit",
  ],
  [
    "Copilot",
    400,
    {
      error: {
        message: "prompt token count of 391491 exceeds the limit of 128000",
        code: "model_max_prompt_tokens_exceeded",
      },
    },
    "prompt token count of 391491 exceeds the limit of 128000",
  ],
  [
    "Z.ai",
    400,
    { error: { code: "1261", message: "Prompt exceeds max length" } },
    "Prompt exceeds max length",
  ],
  [
    "Together",
    422,
    {
      error: {
        message:
          "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
        type: "invalid_request_error",
      },
    },
    "`inputs` tokens + `max_new_tokens` must be <= 8193",
  ],
  [
    "Together, newer text",
    400,
    {
      error: { message: "The input (9000 tokens) is longer than the model's context length (8192 tokens)." },
    },
    "is longer than the model's context length (8192 tokens)",
  ],
  [
    "LiteLLM",
    400,
    {
      error: {
        message:
          "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: BedrockException - the request was rejected",
        type: null,
        param: null,
        code: "400",
      },
    },
    "ContextWindowExceededError: BedrockException",
  ],
  [
    "LiteLLM, with OpenAI's text",
    400,
    {
      error: {
        message:
          "Requested token count exceeds the model's maximum context length of 16384 tokens. You requested a total of 17964 tokens: 1580 input + 16384 completion.",
      },
    },
    "maximum context length of 16384 tokens",
  ],
  [
    "OpenRouter",
    400,
    {
      error: {
        message:
          "This endpoint's maximum context length is 131072 tokens. However, you requested about 180000 tokens.",
        code: 400,
      },
    },
    "maximum context length is 131072 tokens",
  ],
  [
    "vLLM, as plain `message`",
    400,
    {
      object: "error",
      message:
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.",
      type: "BadRequestError",
      code: 400,
    },
    "maximum context length is 4096 tokens",
  ],
  [
    "llama.cpp",
    400,
    {
      error: {
        code: 400,
        message: "the request exceeds the available context size, try increasing it",
        type: "exceed_context_size_error",
      },
    },
    "exceeds the available context size",
  ],
  [
    "Ollama",
    400,
    { error: "prompt too long; exceeded max context length by 1200 tokens" },
    "exceeded max context length by 1200 tokens",
  ],
  ["a proxy with plain text", 413, "Payload Too Large: the upstream takes 1 MB", "the upstream takes 1 MB"],
];

const google: Wording = [
  "Google",
  400,
  {
    error: {
      code: 400,
      message: "Request payload size exceeds the limit: 20971520 bytes.",
      status: "INVALID_ARGUMENT",
    },
  },
  "Request payload size exceeds the limit: 20971520 bytes",
];

const every = [...wordings.map((wording) => [...wording, "openai"] as const), [...google, "google"] as const];

describe("[OVF1] the provider's error for a request that is too long is recognized, for every provider", () => {
  test.each(every)("%s", async (_, status, body, _words, format) => {
    const { skein } = await openSkein(
      (request) => {
        if (request.body.length > 16_000) return { status, body };
        return { text: request.isSummary ? goodSummary : "Noted." };
      },
      { format },
    );
    await sendParts(skein, 8);
    const { result, measures } = await sendAndWatch(skein, "What was the first part about?");
    expect(result).toMatchObject({ reply: "Noted." });
    const { entries } = (await skein.store.sessions.page({ agentId: "main" }, "s", {
      along: "all",
      limit: 1000,
    })) as { entries: readonly { type: string }[] };
    expect(entries.some(({ type }) => type === "compaction") || measures.length > 0).toBe(true);
  });
});

describe("[OVF2] a request that no measure can shrink enough ends with the provider's own error", () => {
  test.each(every)("%s", async (_, status, body, said, format) => {
    const { skein } = await openSkein(() => ({ status, body }), { format });
    const { result } = await sendAndWatch(skein, "Hello");
    expect(result).toMatchObject({ code: "context_overflow", message: expect.stringContaining(said) });
  });

  test("an answer that ends with model_context_window_exceeded is an overflow too", async () => {
    const { skein } = await openSkein(() => ({ text: "", finishReason: "model_context_window_exceeded" }));
    const { result } = await sendAndWatch(skein, "Hello");
    expect(result).toMatchObject({
      code: "context_overflow",
      message: expect.stringContaining("model_context_window_exceeded"),
    });
  });
});

describe("[OVF3] a refusal for anything else is no overflow", () => {
  test.each([
    [
      "a limit on the answer",
      400,
      "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
    ],
    ["a limit on a parameter", 400, "the value of top_k exceeds the limit of 500"],
    ["throttling", 400, "ThrottlingException: Too many tokens, please wait before trying again."],
  ])("%s", async (_, status, message) => {
    const { skein, standIn } = await openSkein(() => ({ status, body: { error: { message } } }));
    const { result, measures } = await sendAndWatch(skein, "Hello");
    expect(result).toMatchObject({
      code: "model_failed",
      message: expect.stringContaining(message.replace(/\.$/, "")),
    });
    expect(measures).toEqual([]);
    expect(standIn.requests).toHaveLength(1);
  });
});

describe("[OVF4] a provider's error is shown in its own words, in every format", () => {
  test.each([
    ["error as text", { error: "The model is being repaired" }],
    ["top-level message", { message: "The model is being repaired" }],
    ["detail", { detail: "The model is being repaired" }],
    ["a list of errors", { errors: [{ message: "The model is being repaired" }] }],
    ["an error in a list", [{ error: { message: "The model is being repaired" } }]],
    ["plain text", "The model is being repaired"],
  ])("%s", async (_, body) => {
    const { skein } = await openSkein(() => ({ status: 400, body }));
    const { result } = await sendAndWatch(skein, "Hello");
    expect(result).toMatchObject({ code: "model_failed" });
    expect((result as Error).message).toContain("The model is being repaired");
    expect((result as Error).message).not.toContain("Bad Request");
  });

  test("an empty body: names the status, and states that there was no reason", async () => {
    const { skein } = await openSkein(() => ({ status: 400, body: "" }));
    const { result } = await sendAndWatch(skein, "Hello");
    expect((result as Error).message).toContain("HTTP 400 without an error message");
  });
});

const overflow =
  (limit: number) =>
  (request: StandInRequest): StandInReply => {
    if (request.body.length > limit)
      return { status: 400, body: { error: { message: "prompt is too long: 9 tokens > 8 maximum" } } };
    return { text: request.isSummary ? goodSummary : "Noted." };
  };

const read = (length: number) =>
  defineTool({
    name: "read",
    description: "Reads a page.",
    parameters: Type.Object({}),
    execute: async () => "page ".repeat(length / 5),
  });

const callRead = (id: string): StandInReply => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  body: `data: ${JSON.stringify({
    id: "c1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        delta: {
          role: "assistant",
          tool_calls: [{ index: 0, id, type: "function", function: { name: "read", arguments: "{}" } }],
        },
        finish_reason: "tool_calls",
      },
    ],
  })}\n\ndata: [DONE]\n\n`,
});

describe("[OVF5] after an overflow every further request is smaller than the one that was refused", () => {
  test.each([300_000, 200_000, 30_000])("with a tool result of %i characters", async (length) => {
    const limit = 20_000;
    const { skein, standIn } = await openSkein(
      (request, index) => (index === 0 ? callRead("call_1") : overflow(limit)(request)),
      { tools: [read(length)] },
    );
    const { result, measures } = await sendAndWatch(skein, "Read the page");
    expect(result).toMatchObject({ reply: "Noted." });
    const asked = standIn.requests.filter(({ isSummary }) => !isSummary).slice(1);
    const sizes = asked.map(({ body }) => body.length);
    for (const [index, size] of sizes.slice(1).entries()) expect(size).toBeLessThan(sizes[index] ?? 0);
    const done = measures.filter((event) => event.type === "compaction" && event.phase === "done");
    expect(done.length).toBeGreaterThan(0);
  });
});

describe("every measure reports how many tokens it freed", () => {
  /** Counts the tokens in the messages that the provider received, in the usual way. */
  const tokensIn = ({ body }: StandInRequest) => {
    const { messages } = JSON.parse(body) as {
      messages: { role: string; content: Parameters<typeof textOf>[0] }[];
    };
    const shown = messages.filter(({ role }) => role !== "system");
    return estimateTokens(shown.map(({ content }) => textOf(content)));
  };

  test("if effective, by as many as the next request is smaller; otherwise none", async () => {
    let limit = Number.POSITIVE_INFINITY;
    const { skein, standIn } = await openSkein((request) => overflow(limit)(request));
    await sendParts(skein, 5);
    limit = 12_000;
    const { measures } = await sendAndWatch(skein, words(6));
    const ended = measures.flatMap((event) =>
      event.type === "compaction" && event.phase !== "started" ? [event] : [],
    );
    for (const { phase, freedTokens } of ended) {
      if (phase === "done") expect(freedTokens).toBeGreaterThan(0);
      else expect(freedTokens).toBe(0);
    }
    expect(ended.some(({ phase }) => phase === "done")).toBe(true);
    const asked = standIn.requests.filter(({ isSummary }) => !isSummary).slice(5);
    const [refused, answered] = [asked[0], asked.at(-1)] as [StandInRequest, StandInRequest];
    const smallerBy = (await tokensIn(refused)) - (await tokensIn(answered));
    const freed = ended.reduce((sum, { freedTokens = 0 }) => sum + freedTokens, 0);
    expect(smallerBy).toBeGreaterThan(1000);
    expect(freed).toBe(smallerBy);
  });
});

describe("[OVF7] a request for a summary is tried again as any other", () => {
  const faults: readonly (readonly [string, StandInReply])[] = [
    ["429", { status: 429, body: { error: { message: "slow down" } }, headers: { "retry-after-ms": "1" } }],
    ["500", { status: 500, body: { error: { message: "oh" } }, headers: { "retry-after-ms": "1" } }],
    ["503", { status: 503, body: "busy", headers: { "retry-after-ms": "1" } }],
    ["a reset", "reset"],
  ];
  test.each(faults)("%s", async (_, fault) => {
    let limit = Number.POSITIVE_INFINITY;
    let faultsLeft = 1;
    const { skein, standIn } = await openSkein((request) => {
      if (request.isSummary && faultsLeft-- > 0) return fault;
      return overflow(limit)(request);
    });
    await sendParts(skein, 5);
    limit = 13_000;
    const { result, events } = await sendAndWatch(skein, words(6));
    expect(result).toMatchObject({ reply: "Noted." });
    expect(faultsLeft).toBeLessThan(0);
    expect(events.some(({ type }) => type === "retry")).toBe(true);
    expect(standIn.requests.filter(({ isSummary }) => isSummary).length).toBeGreaterThan(1);
    expect(
      events.some(
        (event) => event.type === "compaction" && event.measure === "compact" && event.phase === "done",
      ),
    ).toBe(true);
  });
});

describe("[OVF8] a summary that overflows itself is made from smaller pieces", () => {
  test("a window configured far too large still recovers", async () => {
    const { skein, standIn } = await openSkein(overflow(12_000));
    await appendTurns(
      skein,
      Array.from({ length: 60 }, (_, turn) => words(turn)),
    );
    const { result, events } = await sendAndWatch(skein, "What was it about?");
    expect(result).toMatchObject({ reply: "Noted." });
    const summaries = standIn.requests.filter(({ isSummary }) => isSummary);
    expect(summaries.some(({ body }) => body.length > 12_000)).toBe(true);
    expect(summaries.filter(({ body }) => body.length <= 12_000).length).toBeGreaterThan(5);
    expect(events.some((event) => event.type === "compaction" && event.phase === "done")).toBe(true);
    const page = await skein.store.sessions.page({ agentId: "main" }, "s", { along: "all", limit: 1000 });
    const said = (page?.entries ?? []).flatMap((entry) =>
      entry.type === "message" && entry.message.role === "user" ? [textOf(entry.message.content)] : [],
    );
    for (let turn = 0; turn < 60; turn++) expect(said).toContain(words(turn));
  });
});

describe("[OVF9] a summary that permanently fails ends no turn that can continue without it", () => {
  const failing: StandInReply = { status: 400, body: { error: { message: "no summaries today" } } };

  test("over the threshold but within the window: the request is sent unchanged", async () => {
    const { skein } = await openSkein((request) => (request.isSummary ? failing : { text: "Noted." }));
    await appendTurns(
      skein,
      Array.from({ length: 26 }, () => "The gardens of Kyoto in November. ".repeat(1000)),
    );
    const { result, measures } = await sendAndWatch(skein, "What was it about?");
    expect(measures.length).toBeGreaterThan(0);
    expect(result).toMatchObject({ reply: "Noted." });
  });

  test("after an overflow: results are shortened instead", async () => {
    const { skein } = await openSkein(
      (request, index) => {
        if (index === 0) return callRead("call_1");
        return request.isSummary ? failing : overflow(20_000)(request);
      },
      { tools: [read(60_000)] },
    );
    const { result } = await sendAndWatch(skein, "Read the page");
    expect(result).toMatchObject({ reply: "Noted." });
  });
});

describe("the provider's count of an earlier request is used only for what that request contained", () => {
  /** Counts a request as the provider does. */
  const counted = ({ body }: StandInRequest) => {
    const prompt = Math.ceil(body.length / 4);
    return { usage: { prompt_tokens: prompt, completion_tokens: 5, total_tokens: prompt + 5 } };
  };

  test("a request that fits once its results are truncated is sent", async () => {
    const { skein } = await openSkein(
      (request, index) => {
        if (request.isSummary) return { status: 400, body: { error: { message: "no summaries today" } } };
        return index < 2 ? callRead(`call_${index}`) : { text: "Noted.", ...counted(request) };
      },
      { window: 20_000, tools: [read(22_000)] },
    );
    await sendAndWatch(skein, "Read the pages");
    const { result, measures } = await sendAndWatch(skein, "It is quiet there. ".repeat(1500));
    expect(measures).toContainEqual(expect.objectContaining({ measure: "truncate", phase: "done" }));
    expect(result).toMatchObject({ reply: "Noted." });
  });

  test("a request with results that the previous request pruned is compacted before it is sent", async () => {
    const { skein, standIn } = await openSkein(
      (request) => ({ text: request.isSummary ? goodSummary : "Noted.", ...counted(request) }),
      { window: 30_000, pruning: "cache-ttl" },
    );
    const call = (id: string) => ({ type: "toolCall" as const, id, name: "read", arguments: {} });
    const messages = Array.from({ length: 12 }, (_, turn) => [
      { role: "user" as const, content: `Question ${turn}`, timestamp: 1 },
      { ...assistantMessage(""), content: [call(`c${turn}`)], stopReason: "toolUse" as const, timestamp: 1 },
      {
        role: "toolResult" as const,
        toolCallId: `c${turn}`,
        toolName: "read",
        content: [{ type: "text" as const, text: `${turn} garden `.repeat(1200) }],
        isError: false,
        timestamp: 1,
      },
      { ...assistantMessage(`Answer ${turn}`), timestamp: 1 },
    ]).flat();
    const scope = { agentId: "main" };
    await skein.store.sessions.create(scope, { key: "agent:main:session:s", sessionId: "s", cwd: home.path });
    await skein.store.sessions.append(
      scope,
      "s",
      messages.map((message) => ({ draft: { type: "message" as const, message } })),
    );
    expect((await sendAndWatch(skein, "And now?")).measures).toEqual([]);
    expect(standIn.requests.at(-1)?.body).toContain("characters of an old tool result left out");
    const { result, measures } = await sendAndWatch(skein, "And then?");
    expect(measures).toMatchObject([{ phase: "started" }, { measure: "compact", phase: "done" }]);
    expect(result).toMatchObject({ reply: "Noted." });
  });
});

describe("compactions of a run", () => {
  test("[CMP1] one starts once the context exceeds the window minus the reserve, and not before", async () => {
    // The reserve is a quarter of a small window.
    const { skein } = await openSkein((request) => ({ text: request.isSummary ? goodSummary : "Noted." }), {
      window: 20_000,
    });
    const parts = (count: number) => Array.from({ length: count }, (_, turn) => words(turn));
    const one = await estimateTokens([words(0)]);
    await appendTurns(skein, parts(Math.floor(13_000 / one)));
    expect((await sendAndWatch(skein, "Still below?")).measures).toEqual([]);
    await appendTurns(skein, parts(Math.ceil(2500 / one)));
    const { result, measures } = await sendAndWatch(skein, "And now?");
    expect(measures).toMatchObject([{ phase: "started" }, { phase: "done" }]);
    expect(result).toMatchObject({ reply: "Noted." });
  });

  test("[CMP15] a request that never fits is compacted at most three times", async () => {
    let limit = Number.POSITIVE_INFINITY;
    const { skein } = await openSkein((request) =>
      request.isSummary ? { text: goodSummary } : overflow(limit)(request),
    );
    await appendTurns(
      skein,
      Array.from({ length: 300 }, (_, turn) => words(turn).slice(0, 600)),
    );
    limit = 100;
    const { result, measures } = await sendAndWatch(skein, "Does it fit?");
    const compactions = measures.filter(({ measure, phase }) => measure === "compact" && phase === "done");
    expect(compactions).toHaveLength(3);
    expect(result).toMatchObject({ code: "context_overflow" });
  });
});
