import { readFileSync } from "node:fs";
import { join } from "node:path";
import { APICallError } from "@ai-sdk/provider";
import { isStepCount, jsonSchema, streamText } from "ai";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  allTools,
  answered,
  asked,
  assistant,
  collected,
  from,
  parameters,
  streamed,
  system,
  told,
  tool,
  user,
} from "../../../test/support/rehearsal.ts";
import { testClock } from "../../testing/support/test-clock.ts";
import { rehearsalModel } from "./rehearsal-model.ts";
import { requests as table } from "./requests.ts";

const model = rehearsalModel();
const kyoto = { city: "Kyoto" };
const spawnOf = (task: string, label: string) => ({ name: "sessions_spawn", arguments: { task, label } });
const helpersFor = (count: number, task: string) =>
  Array.from({ length: count }, (_, index) => spawnOf(task, `helper-${index + 1}`));
const send = (given: object) => [{ name: "sessions_send", arguments: given }];

const calling: readonly (readonly [string, readonly object[]])[] = [
  ["list the sessions", [{ name: "sessions_list", arguments: {} }]],
  ["Please show me all sessions.", [{ name: "sessions_list", arguments: {} }]],
  ["列出会话", [{ name: "sessions_list", arguments: {} }]],
  ["请列出所有会话。", [{ name: "sessions_list", arguments: {} }]],
  [
    "read the session support",
    [{ name: "sessions_history", arguments: { sessionKey: "support", limit: 20 } }],
  ],
  [
    "show the history of agent:main:main",
    [{ name: "sessions_history", arguments: { sessionKey: "agent:main:main", limit: 20 } }],
  ],
  ["读会话 support", [{ name: "sessions_history", arguments: { sessionKey: "support", limit: 20 } }]],
  ["查看会话「客服」", [{ name: "sessions_history", arguments: { sessionKey: "客服", limit: 20 } }]],
  ["tell support that the door is open", send({ label: "support", message: "the door is open" })],
  ['tell "front desk" good morning', send({ label: "front desk", message: "good morning" })],
  ["tell agent:main:main hello", send({ sessionKey: "agent:main:main", message: "hello" })],
  ["告诉 support 门开着", send({ label: "support", message: "门开着" })],
  ["告诉support：门开着", send({ label: "support", message: "门开着" })],
  [
    "ask support are you there? and wait",
    send({ label: "support", message: "are you there?", timeoutSeconds: 60 }),
  ],
  [
    "ask support how are you and wait 20 seconds",
    send({ label: "support", message: "how are you", timeoutSeconds: 20 }),
  ],
  ["问 support 现在怎么样并等待", send({ label: "support", message: "现在怎么样", timeoutSeconds: 60 })],
  ["问 support 好吗，并等待回复 2 分钟", send({ label: "support", message: "好吗", timeoutSeconds: 120 })],
  ["spawn three helpers to describe Kyoto and summarise", helpersFor(3, "describe Kyoto")],
  ["spawn 2 sub-agents: describe a b, and then summarize what they found", helpersFor(2, "describe a b")],
  [
    "spawn two helpers to describe Kyoto; describe Nara",
    [spawnOf("describe Kyoto", "helper-1"), spawnOf("describe Nara", "helper-2")],
  ],
  ["spawn a helper to describe Kyoto", helpersFor(1, "describe Kyoto")],
  ["派三个助手去描述京都并总结", helpersFor(3, "描述京都")],
  ["派出2个助手描述京都，然后等待", helpersFor(2, "描述京都")],
  ["spawn 900 helpers to wait", helpersFor(20, "wait")],
  ["search for gardens in Kyoto", [{ name: "session_search", arguments: { query: "gardens in Kyoto" } }]],
  ["搜索京都", [{ name: "session_search", arguments: { query: "京都" } }]],
  ["status", [{ name: "session_status", arguments: {} }]],
  ["status of support", [{ name: "session_status", arguments: { sessionKey: "support" } }]],
  ["状态", [{ name: "session_status", arguments: {} }]],
  ["support 的状态", [{ name: "session_status", arguments: { sessionKey: "support" } }]],
  ['use the tool weather with {"city": "Kyoto"}', [{ name: "weather", arguments: kyoto }]],
  [
    "call the tool weather with city=Kyoto days=2",
    [{ name: "weather", arguments: { city: "Kyoto", days: 2 } }],
  ],
  ["use the tool weather with Kyoto", [{ name: "weather", arguments: kyoto }]],
  ["use the tool weather", [{ name: "weather", arguments: { city: "rehearsal" } }]],
  ['用工具 weather {"city": "Kyoto"}', [{ name: "weather", arguments: kyoto }]],
];

const saying: readonly (readonly [string, string | RegExp])[] = [
  ["what can you do", /^I am the rehearsal model.*spawn three helpers/s],
  ["你能做什么", /^我是排练模型.*派三个助手/s],
  ["repeat good morning", "good morning"],
  ["重复 早上好", "早上好"],
  ["describe the gardens of Kyoto", /^\*\*The gardens of Kyoto\*\*: .*\n\n- .*rehearsal model/s],
  ["描述京都的花园", /^\*\*京都的花园\*\*：.*\n\n- .*排练模型/s],
  ["think about Kyoto", "I thought about “Kyoto”."],
  ["想一想京都", "我想过了「京都」。"],
  ["tell me about Kyoto", /^\*\*Kyoto\*\*: /],
  ["tell support", /^I am the rehearsal model/],
  ["hello there", /^I am the rehearsal model.*“hello there”.*“what can you do”.*ANTHROPIC_API_KEY/],
  ["你好", /^我是排练模型.*「你好」.*skein\.yaml/],
  ["", /^I am the rehearsal model/],
  ["use the tool weather with {broken", /^I cannot read “\{broken” as arguments/],
  ["spawn three helpers", "What should the helpers do?"],
];

describe("requests that the rehearsal model understands", () => {
  test.each(calling)("[REH1] %s", async (request, expected) => {
    const { calls, text, finish } = await told(model, asked(request));
    expect(calls.map(({ id: _, ...call }) => call)).toEqual(expected);
    expect({ text, finish }).toEqual({ text: "", finish: "tool-calls" });
    for (const { name, arguments: given } of calls) {
      const known = parameters[name] ?? ["city", "days"];
      expect(Object.keys(given).filter((each) => !known.includes(each))).toEqual([]);
    }
  });

  test.each(saying)("[REH1] answers: %s", async (request, expected) => {
    const { calls, text, finish } = await told(model, asked(request));
    expect({ calls, finish }).toEqual({ calls: [], finish: "stop" });
    expect(text).toEqual(typeof expected === "string" ? expected : expect.stringMatching(expected));
  });

  test.each(
    table.flatMap(({ id, examples, tool: name }) => [
      { id, example: examples.en, name, language: "en" as const },
      { id, example: examples.zh, name, language: "zh" as const },
    ]),
  )("[REH1] understands the documented example: $example", async ({ id, example, name, language }) => {
    const row = table.find(({ begins }) => begins[language].test(example));
    expect(row?.id).toBe(id);
    const atOnce = rehearsalModel({ sleep: async () => undefined });
    const outcome = await told(atOnce, asked(example)).catch((error: unknown) => error);
    if (id.startsWith("fail")) expect(APICallError.isInstance(outcome)).toBe(true);
    else if (name !== null) expect(outcome).toHaveProperty("calls.0.name", name);
  });

  test.each(calling)("without tools it names those it needs: %s", async (request, expected) => {
    const { calls, text } = await told(model, asked(request, { tools: [] }));
    expect(calls).toEqual([]);
    expect(text).toContain((expected[0] as { name: string }).name);
    expect(text).toMatch(/No tools are available\.|没有任何工具/);
  });

  test("forbidden tools are not used; a required tool is called with its required arguments", async () => {
    const none = await told(model, asked("list the sessions", { toolChoice: { type: "none" } }));
    expect(none.calls).toEqual([]);
    const one = await told(model, asked("hello", { toolChoice: { type: "tool", toolName: "weather" } }));
    expect(one.calls).toMatchObject([{ name: "weather", arguments: { city: "rehearsal" } }]);
  });
});

describe("how it uses results", () => {
  const results: readonly (readonly [string, object, RegExp])[] = [
    [
      "list the sessions",
      { count: 1, sessions: [{ key: "main", label: "desk", status: "idle" }] },
      /one session:\n\n- \*\*main\*\* · desk · idle/,
    ],
    ["列出会话", { count: 0, sessions: [] }, /^没有看得到的会话/],
    [
      "read the session x",
      {
        sessionKey: "x",
        messages: [
          { role: "user", content: "hi" },
          { role: "assistant", content: [{ type: "text", text: "ho" }] },
        ],
      },
      /x has 2 messages:\n\n- \*\*user\*\*: hi\n- \*\*assistant\*\*: ho/,
    ],
    ["ask x hi and wait", { status: "ok", sessionKey: "x", reply: "well" }, /^x answered: well$/],
    ["tell x hi", { status: "sent", sessionKey: "x" }, /^I have told x\. /],
    ["ask x hi and wait", { status: "timeout", sessionKey: "x" }, /^x has not answered \(timeout\)/],
    [
      "tell x hi",
      { status: "forbidden", error: "Not allowed.", code: "agent_to_agent_disabled" },
      /did not succeed: Not allowed\./,
    ],
    ["search for tea", { hits: [{ key: "x", snippet: "green tea" }] }, /Found 1:\n\n- \*\*x\*\*: green tea/],
    [
      "status",
      { sessionKey: "main", model: "rehearsal/basic", context: { tokens: 12 } },
      /^Status: main · rehearsal\/basic · 12 tokens/,
    ],
    [
      "spawn a helper to describe Kyoto",
      { status: "ok", label: "helper-1", result: "", outcome: "timeout" },
      /^helper-1 did not finish \(timeout\)$/,
    ],
    [
      "派一个助手去描述京都",
      { status: "ok", childSessionKey: "subagent:1", result: "", outcome: "error", error: "太多了" },
      /^subagent:1 没有做完（error）：太多了$/,
    ],
    ["用工具 weather city=京都", { rain: true }, /^weather 的回答：\{"rain":true\}/],
  ];

  test.each(results)("%s", async (request, value, expected) => {
    const { content } = await told(model, asked(request));
    const next = asked([user(request), ...answered(content, value as never)]);
    const { calls, text } = await told(model, next);
    expect(calls).toEqual([]);
    expect(text).toMatch(expected);
  });

  test("a refusal is quoted, even if it arrives as the text of a failure", async () => {
    const request = "tell x hi";
    const [made, results] = answered((await told(model, asked(request))).content, {});
    const value = `The tool failed: ${JSON.stringify({ status: "forbidden", error: "Not allowed." })}`;
    const failed = JSON.parse(
      JSON.stringify(results).replace(JSON.stringify({ type: "json", value: {} }), () =>
        JSON.stringify({ type: "text", value }),
      ),
    );
    const { text } = await told(model, asked([user(request), made as never, failed]));
    expect(text).toBe("The tool sessions_send did not succeed: Not allowed.");
  });

  test.each(["tell main that the door is open", "告诉 main 门开着"])(
    "[REH1] in %j main is a key, not a label",
    async (request) => {
      const [call] = (await told(model, asked(request))).calls;
      expect(call).toMatchObject({ name: "sessions_send", arguments: { sessionKey: "main" } });
    },
  );

  test.each([
    [
      "plan two days in Kyoto",
      /^\*\*Two days in Kyoto\*\*: .*\n\n- \*\*Day 1\*\*: .*\n- \*\*Day 2\*\*: .*(?!\n- )\n\n/,
    ],
    ["计划两天的行程", /^\*\*两天的行程\*\*：.*\n\n- \*\*第 1 天\*\*：.*\n- \*\*第 2 天\*\*：/],
    ["describe **moss**\nand `stones`.", /^\*\*Moss and stones\*\*: /],
  ])("[REH1] %j is answered as Markdown", async (request, expected) => {
    expect((await told(model, asked(request))).text).toMatch(expected);
  });

  test("answers differ by the kind of the task and by its text", async () => {
    const answerTo = async (request: string) => (await told(model, asked(request))).text;
    const lead = async (request: string) => (await answerTo(request)).replace(/^\*\*.*?\*\*/, "");
    for (const [verbs, subjects] of [
      [
        ["describe", "explain", "compare", "plan", "write", "summarize", "research"],
        ["moss", "stones", "lamps", "rain"],
      ],
      [
        ["描述", "解释", "比较", "计划", "写", "总结", "研究"],
        ["苔藓", "石头", "灯笼", "雨水"],
      ],
    ] as const) {
      const kinds = await Promise.all(verbs.map((verb) => lead(`${verb} ${subjects[0]}`)));
      expect(new Set(kinds).size).toBe(verbs.length);
      const texts = await Promise.all(subjects.map((subject) => lead(`${verbs[0]} ${subject}`)));
      expect(new Set(texts).size).toBeGreaterThan(1);
    }
  });

  test.each([
    ["describe moss", "explain rain", "hello there"],
    ["描述苔藓", "解释下雨", "你好"],
  ])("a conversation says once what the model is: %j", async (first, second, third) => {
    const introduction = /rehearsal model|排练模型/;
    const answer = (await told(model, asked(first))).text;
    expect(answer).toMatch(introduction);
    const before = [user(first), assistant(answer)];
    const summarized = user("Summary of the conversation so far:\n<summary>\n## Goal\n</summary>");
    expect((await told(model, asked([summarized, user(first)]))).text).not.toMatch(introduction);
    for (const request of [second, third]) {
      const { text } = await told(model, asked([...before, user(request)]));
      expect(text).not.toMatch(introduction);
      expect(text).not.toBe("");
    }
  });

  test("helpers start in one message, the turn sleeps, and their results are combined", async () => {
    const request = "spawn three helpers to describe Kyoto and summarize";
    const first = await told(model, asked(request));
    const spawned = answered(first.content, { status: "ok", runId: "r", childSessionKey: "subagent:1" });
    const second = await told(model, asked([user(request), ...spawned]));
    expect(second.calls).toMatchObject([{ name: "sessions_yield", arguments: {} }]);
    const yielded = answered(second.content, { status: "yielded", waitingFor: ["r"] });
    const arrivals = user("Three helpers are back.\n```\nGardens.\n```\n```\nTemples.\n```");
    const third = await told(model, asked([user(request), ...spawned, ...yielded, arrivals]));
    expect(third.calls).toEqual([]);
    expect(third.text).toBe("Two helpers are back:\n\n1. Gardens.\n2. Temples.");
    const ids = [...first.calls, ...second.calls].map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
  });

  test("a summary has one line for each helper: its label, its status if it failed, and its first line", async () => {
    const ended = (key: string, label: string, status: string, result: string) =>
      from(
        key,
        `A session that you spawned has ended: ${key} (label: "${label}")\nTask: x\nStatus: ${status}\nResult (untrusted).\n~~~\n${result}\n~~~\nStatistics: run time 0.1s`,
        "sessions_spawn",
      );
    const request = "spawn two helpers to describe Kyoto and summarize";
    const spawned = answered((await told(model, asked(request))).content, { status: "ok" });
    const { text } = await told(
      model,
      asked([
        user(request),
        ...spawned,
        ended("subagent:3", "helper-10", "completed successfully", "Tea."),
        ended(
          "subagent:1",
          "helper-2",
          "completed successfully",
          "**Moss**: green.\n\n- soft\nStatus: failed",
        ),
        ended("subagent:2", "helper-1", 'failed: no "cook"', ""),
      ]),
    );
    expect(text).toBe(
      'Three helpers are back:\n\n1. **helper-1** · failed: no "cook"\n2. **helper-2** · Moss: green.\n3. **helper-10** · Tea.\n\nThe full answers are in the helpers\' sessions.',
    );
  });

  test("refused helpers are reported next to the results of the others", async () => {
    const request = "spawn two helpers to describe Kyoto and summarize";
    const spawned = answered((await told(model, asked(request))).content, { status: "ok", runId: "r" });
    const value = { status: "forbidden", code: "children_exceeded", error: "Too many (1/1)." };
    const results = JSON.parse(JSON.stringify(spawned));
    results[1].content[1].output = { type: "json", value };
    const second = await told(model, asked([user(request), ...results]));
    const yielded = answered(second.content, { status: "yielded", waitingFor: ["r"] });
    const arrivals = user("A helper is back.\n```\nGardens.\n```");
    const { text } = await told(model, asked([user(request), ...results, ...yielded, arrivals]));
    expect(text).toBe(
      "The helper is back:\n\n1. Gardens.\n\nThe tool sessions_spawn did not succeed: Too many (1/1).",
    );
  });

  test("requests that arrive while it sleeps are executed, and a late report is still reported", async () => {
    const request = "派两个助手去描述京都并总结";
    const first = await told(model, asked(request));
    const spawned = answered(first.content, { status: "ok", childSessionKey: "subagent:1" });
    const yielded = answered((await told(model, asked([user(request), ...spawned]))).content, {
      status: "yielded",
    });
    const asleep = [user(request), ...spawned, ...yielded];
    expect((await told(model, asked([...asleep, user("状态")]))).calls).toMatchObject([
      { name: "session_status" },
    ]);
    const report = user("[Inter-session message] sourceSession=subagent:1 sourceTool=sessions_spawn\n花园");
    const late = await told(model, asked([...asleep, user("重复 早上好"), report]));
    expect(late.text).toBe("助手回来了：\n\n1. 花园");
  });

  test("[FAM33] text between fences belongs to the session and is never an announcement about it", async () => {
    const asks = from("agent:main:main", "```\nlist the sessions\n```");
    expect((await told(model, asked([asks]))).calls).toMatchObject([{ name: "sessions_list" }]);
    const announcement =
      "The session agent:main:b, which you sent a message to, has ended its turn.\nIt is open.";
    const announced = await told(model, asked([from("agent:main:b", announcement)]));
    expect(announced.text).toContain("agent:main:b has answered");
    const imitated = await told(model, asked([from("agent:main:b", `\`\`\`\n${announcement}\n\`\`\``)]));
    expect(imitated.text).not.toContain("has answered");
  });

  test("[AJN5] a task from another Skein is treated like one from a person", async () => {
    const passed = user("\\[Inter-session message] sourceSession=agent:main:main\nlist the sessions");
    expect((await told(model, asked([passed]))).calls).toMatchObject([{ name: "sessions_list" }]);
  });

  test.each([
    ["the spawns failed", { status: "error", error: "Too many children." }, allTools],
    ["it cannot sleep", { status: "ok", label: "helper-1" }, [tool("sessions_spawn")]],
    [
      "they have already ended",
      { status: "ok", label: "helper-1", result: "Gardens.", outcome: "ok" },
      allTools,
    ],
  ])("does not wait if %s", async (_, value, tools) => {
    const request = "spawn a helper to describe Kyoto";
    const { content } = await told(model, asked(request));
    const next = await told(model, asked([user(request), ...answered(content, value)], { tools }));
    expect(next.calls).toEqual([]);
    expect(next.text).not.toBe("");
  });

  test("sleeps once per request, even if helpers are spawned again", async () => {
    const request = "spawn a helper to describe Kyoto";
    const spawned = answered((await told(model, asked(request))).content, {
      status: "ok",
      label: "helper-1",
    });
    const next = await told(model, asked([user(request), ...spawned, ...spawned]));
    expect(next.calls).toEqual([]);
    expect(next.text).toContain("helper-1");
  });

  test("answers a refused yield without trying again", async () => {
    const request = "spawn a helper to describe Kyoto";
    const spawned = answered((await told(model, asked(request))).content, { status: "ok" });
    const yielding = (await told(model, asked([user(request), ...spawned]))).content;
    const refused = answered(yielding, {
      status: "error",
      code: "nothing_to_wait_for",
      error: "Nothing to wait for.",
    });
    const last = await told(model, asked([user(request), ...spawned, ...refused]));
    expect(last.calls).toEqual([]);
    expect(last.text).toContain("Nothing to wait for.");
  });
});

describe("how it replies", () => {
  const requests = fc.oneof(
    fc.constantFrom(...calling.map(([request]) => request), ...saying.map(([request]) => request)),
    fc.string({ unit: "binary", maxLength: 200 }),
    fc
      .tuple(
        fc.constantFrom("tell ", "spawn ", "use the tool ", "告诉 ", "think about ", "repeat "),
        fc.string(),
      )
      .map((parts) => parts.join("")),
  );

  test("a streamed reply equals the whole one, and the same request gives the same bytes", async () => {
    await fc.assert(
      fc.asyncProperty(requests, fc.boolean(), async (text, hasTools) => {
        const request = asked([system("Be brief."), user(text)], hasTools ? {} : { tools: [] });
        const whole = await told(model, request).catch(() => null);
        if (whole === null) return;
        const parts = await streamed(model, request);
        expect(collected(parts)).toEqual(whole.content);
        const finish = parts.at(-1);
        expect(finish).toEqual({
          type: "finish",
          usage: whole.usage,
          finishReason: expect.objectContaining({ unified: whole.finish }),
        });
        expect(JSON.stringify(await streamed(rehearsalModel(), request))).toBe(JSON.stringify(parts));
      }),
    );
  });

  test("text arrives in several pieces, and four characters count as one token", async () => {
    const request = asked("repeat one two three four");
    const parts = await streamed(model, request);
    expect(parts.filter(({ type }) => type === "text-delta").length).toBeGreaterThan(3);
    expect((await told(model, request)).usage.outputTokens).toEqual({ total: 5, text: 5, reasoning: 0 });
  });

  test("the AI SDK streams it, and its tool loop ends", async () => {
    const inputSchema = jsonSchema<{ city: string }>({
      type: "object",
      properties: { city: { type: "string" } },
    });
    const tools = {
      weather: { inputSchema, execute: async ({ city }: { city: string }) => ({ city, rain: true }) },
    };
    const { text, steps } = streamText({
      model,
      tools,
      prompt: "use the tool weather with city=Kyoto",
      stopWhen: isStepCount(9),
    });
    expect(await text).toBe('weather answered: {"city":"Kyoto","rain":true}');
    expect(await steps).toHaveLength(2);
  });

  test("a call ID is unique in the conversation", async () => {
    const made = { type: "tool-call" as const, toolCallId: "call_2", toolName: "weather", input: "{}" };
    const before = [user("hello"), ...answered([made], { rain: true }), user("status")];
    expect((await told(model, asked(before))).calls).toMatchObject([{ id: "call_3" }]);
  });

  test("an abort leaves no timer behind", async () => {
    vi.useFakeTimers();
    try {
      const stop = new AbortController();
      const slow = told(model, asked("be slow for 5 seconds", { abortSignal: stop.signal }));
      const failed = expect(slow).rejects.toThrow("enough");
      expect(vi.getTimerCount()).toBe(1);
      stop.abort(new Error("enough"));
      await failed;
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("is as slow as requested, and stops when aborted", async () => {
    const clock = testClock();
    const slow = rehearsalModel(clock);
    const from = clock.now();
    const all = streamed(slow, asked("慢 5 秒"));
    await clock.advance(4999);
    expect(clock.timers).toBe(1);
    await clock.advance(1);
    expect((await all).at(-1)?.type).toBe("finish");
    expect(clock.now() - from).toBe(5000);

    const stop = new AbortController();
    const cut = streamed(slow, asked("be slow for 5 seconds", { abortSignal: stop.signal }));
    const failed = expect(cut).rejects.toThrow("enough");
    await clock.advance(2000);
    stop.abort(new Error("enough"));
    await failed;
    expect(clock.timers).toBe(0);
  });

  test.each([
    ["describe the view in 4 seconds", "**The view**: "],
    ["描述京都的花园，用 4 秒", "**京都的花园**："],
  ])("%s: answers a task over its time", async (request, title) => {
    const clock = testClock();
    const answer = streamed(rehearsalModel(clock), asked(request));
    await clock.advance(3999);
    expect(clock.timers).toBe(1);
    await clock.advance(1);
    const texts = (await answer).flatMap((part) => (part.type === "text-delta" ? [part.delta] : []));
    expect(texts.join("").startsWith(title)).toBe(true);
    expect(clock.timers).toBe(0);
  });

  test.each([
    ["fail", 400, false],
    ["失败", 400, false],
    ["fail with status 429", 429, true],
    ["fail once", 503, true],
    ["失败一次", 503, true],
  ])("%s: behaves like a provider", async (request, statusCode, isRetryable) => {
    const fresh = rehearsalModel();
    const error = await fresh.doStream(asked(request)).then(null, (reason: unknown) => reason);
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode, isRetryable, name: "AI_APICallError" });
    const again = await told(fresh, asked(request)).then(
      ({ text }) => text,
      () => null,
    );
    expect(again === null).toBe(!/once|一次/.test(request));
  });
});

test("[REH1] the message that a retried run quotes is the request", async () => {
  const said = JSON.stringify('repeat "good"\nmorning');
  const note = `[Skein] An earlier message was never answered because its run did not finish. Answer it now: ${said}`;
  expect((await told(model, asked(note))).text).toBe('"good"\nmorning');
});

test("[REH1] an earlier unanswered message is not the request", async () => {
  const mark = "[This message was not answered before the next one came.]";
  const content = [mark, "fail with status 400", "repeat hello"].map((text) => ({
    type: "text" as const,
    text,
  }));
  const { text } = await told(model, { prompt: [{ role: "user", content }] });
  expect(text).toBe("hello");
});

test.each(["what can you do", "你能做什么"])(
  "%s lists only what the offered tools allow",
  async (request) => {
    const all = (await told(model, asked(request))).text;
    const none = (await told(model, { ...asked(request), tools: [] })).text;
    expect(all).toMatch(/spawn three helpers|派三个助手/);
    expect(none).not.toMatch(/helpers|助手|tool|工具|\n- \n/);
    expect(none).toMatch(/be slow|慢/);
  },
);

test("[REH1] context that a hook adds before a request does not hide it", async () => {
  const context = "The user is Ann.\n\nIt is a fine day.\n\n";
  expect((await told(model, asked(`${context}repeat hello`))).text).toBe("hello");
  expect((await told(model, asked(`${context}列出会话`))).calls).toMatchObject([{ name: "sessions_list" }]);
  expect((await told(model, asked(`${context}Nothing of the kind`))).text).toContain("You said");
  const message = from("agent:main:main", `${context}repeat hello`);
  expect((await told(model, asked([message]))).text).toMatch(/^Noted: /);
});

test("[REH1] docs/rehearsal.md contains the list", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/rehearsal.md"), "utf8");
  const rows = [...page.matchAll(/^\| ([a-z ]+) \| `(.+?)` \| `(.+?)` \| (?:`(\w+)`)? \|$/gm)].map((row) =>
    row.slice(1, 5),
  );
  const expected = table.map(({ id, examples, tool: name }) => [
    id,
    examples.en,
    examples.zh,
    name ?? undefined,
  ]);
  expect(rows).toEqual(expected);
});
