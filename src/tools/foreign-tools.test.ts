import { generateText, stepCountIs, streamText } from "ai";
import { describe, expect, test } from "vitest";
import { scriptedModel } from "../agents/rehearsal/scripted-model.ts";
import * as s from "../core/schema.ts";
import type { SessionTool } from "./session-tool.ts";
import type { ForeignCall } from "./tool-adapters.ts";
import { foreignTools } from "./tool-adapters.ts";

function toolNamed(name: string, parameters: object): SessionTool {
  const execute = () => Promise.reject(new Error("is not called here"));
  return { name, label: name, description: `What ${name} does.`, parameters, execute };
}

const tools = [
  toolNamed("sessions_list", s.object({ limit: s.optional(s.integer({ minimum: 1 })) })),
  toolNamed("sessions_yield", s.object({ message: s.optional(s.string({ keep: true })) })),
];

interface Made extends ForeignCall {
  readonly name: string;
  readonly args: unknown;
}

function setUp() {
  const made: Made[] = [];
  const offered = foreignTools(async (name, args, call) => {
    made.push({ name, args, ...call });
    return { count: 1, sessions: [{ key: "main" }] };
  }, tools);
  return { made, offered };
}

const script = () =>
  scriptedModel([
    {
      calls: [
        { name: "sessions_list", arguments: { limit: "many" }, id: "call-1" },
        { name: "sessions_yield", arguments: {}, id: "call-2" },
      ],
    },
    { text: "There is one." },
  ]);

const stopWhen = stepCountIs(3);

describe("session tools in an external loop", () => {
  test("generateText of the AI SDK calls them, with any arguments", async () => {
    const { made, offered } = setUp();
    const model = script();
    const abortSignal = new AbortController().signal;
    const { text, steps } = await generateText({
      model,
      tools: offered,
      prompt: "list the sessions",
      stopWhen,
      abortSignal,
    });
    expect(text).toBe("There is one.");
    expect(made).toMatchObject([{ name: "sessions_list", args: { limit: "many" }, toolCallId: "call-1" }]);
    expect(made[0]?.signal?.aborted).toBe(false);
    expect(steps[0]?.toolResults.map(({ output }) => output)).toEqual([
      { count: 1, sessions: [{ key: "main" }] },
      { status: "error", code: "yield_not_supported", error: "Yield not supported in this context" },
    ]);
  });

  test("the model gets their parameters", async () => {
    const { offered } = setUp();
    const model = script();
    await generateText({ model, tools: offered, prompt: "list the sessions", stopWhen });
    expect(model.requests[0]?.tools).toMatchObject([
      {
        name: "sessions_list",
        description: "What sessions_list does.",
        inputSchema: { type: "object", properties: { limit: { type: "integer" } } },
      },
      { name: "sessions_yield", inputSchema: { properties: { message: { type: "string" } } } },
    ]);
    expect(JSON.stringify(model.requests[0]?.tools)).not.toContain("keep");
  });

  test("streamText calls them too", async () => {
    const { made, offered } = setUp();
    const stream = streamText({ model: script(), tools: offered, prompt: "list the sessions", stopWhen });
    expect(await stream.text).toBe("There is one.");
    expect(made).toMatchObject([{ name: "sessions_list", toolCallId: "call-1" }]);
  });
});
