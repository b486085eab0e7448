import { describe, expect, test } from "vitest";
import { call, callsFor, says, scriptedModel } from "../../../test/support/scripted-model.ts";
import { openTurn, tool } from "../../../test/support/turn.ts";
import { resolveTranscriptPolicy } from "../../transcript/policy.ts";
import { readOutput } from "./model-call.ts";

const outputSchema = {
  type: "object",
  properties: { days: { type: "integer", minimum: 1 } },
  required: ["days"],
  additionalProperties: false,
};

async function begin(replies: readonly string[], withTools = false) {
  const model = scriptedModel(replies.map(says));
  const it = await openTurn({ model, tools: withTools ? [tool("read")] : [], with: { outputSchema } });
  await it.say({ role: "user", content: "How long?" });
  return { ...it, model };
}

describe("structured output", () => {
  test.each([
    ['{"days": 3}', { output: { days: 3 } }],
    ['```json\n{"days": 3}\n```', { output: { days: 3 } }],
    ['```\n{"days": 3}```\n', { output: { days: 3 } }],
    ['\uFEFF{"days": 3}', { output: { days: 3 } }],
    ['\uFEFF```json\n\uFEFF{"days": 3}\n```', { output: { days: 3 } }],
    ["Three days.", { problem: expect.stringContaining("it is not valid JSON") }],
    ["", { problem: expect.stringContaining("it is not valid JSON") }],
    ['{"days": 0}', { problem: expect.stringContaining("/days") }],
    ['{"days": "3"}', { problem: expect.stringMatching(/\/days .*integer/) }],
    ["{}", { problem: expect.stringContaining("days") }],
    ["[]", { problem: expect.stringContaining("the value") }],
    ["null", { problem: expect.anything() }],
  ])("[LIB5] parses and checks %j", async (text, expected) => {
    expect(await readOutput(text, outputSchema)).toEqual(expected);
  });

  test("[LIB5] a schema that cannot be checked is a problem and not an exception", async () => {
    const schema = { type: "object", properties: { city: { type: "string", pattern: "(?i)rome" } } };
    expect(await readOutput('{"city": "Rome"}', schema)).toEqual({
      problem: expect.stringContaining("Invalid regular expression"),
    });
  });

  test("[LIB5] a matching answer is the output; any other is reported to the model and requested again", async () => {
    const it = await begin(["Three days.", '{"days": 0}', '{"days": 3}']);
    expect(await it.run()).toMatchObject({ kind: "answered", reply: '{"days": 3}', output: { days: 3 } });
    const lines = await it.lines();
    expect(lines[2]).toMatch(/^custom: Your answer does not match the JSON Schema: it is not valid JSON/);
    expect(lines[4]).toMatch(/^custom: .*\/days/);
    expect(JSON.stringify(it.model.asked[1]?.prompt)).toContain("does not match the JSON Schema");
  });

  test("[LIB5] fails after two corrections and keeps all answers", async () => {
    const it = await begin(["One.", "Two.", "Three.", '{"days": 3}']);
    await expect(it.run()).rejects.toMatchObject({ code: "invalid_output" });
    expect(it.model.asked).toHaveLength(3);
    expect(await it.lines()).toHaveLength(6);
  });

  test("[LIB5] only the last answer must match, not one with tool calls", async () => {
    const model = scriptedModel([callsFor(call("a", "read")), says('{"days": 1}')]);
    const it = await openTurn({ model, tools: [tool("read")], with: { outputSchema } });
    await it.say({ role: "user", content: "How long?" });
    expect(await it.run()).toMatchObject({ output: { days: 1 } });
  });

  test.each([
    ["anthropic", "claude-sonnet-4-5", false, "off", true],
    ["anthropic", "claude-sonnet-4-5", false, "low", false],
    ["anthropic", "claude-sonnet-4-5", true, "off", false],
    ["openai", "gpt-5", true, "low", true],
    ["google", "gemini-2.5-flash", false, "off", true],
    ["google", "gemini-2.5-flash", true, "off", false],
    ["mistral", "mistral-small-latest", true, "off", false],
    ["local", "qwen3", false, "off", true],
    ["rehearsal", "basic", true, "off", true],
  ])(
    "[LIB5] %s/%s, with tools %s, thinking %s: the API gets %s, and the model gets the schema",
    async (...row) => {
      const [provider, name, hasTools, thinkingLevel, isTold] = row;
      const policy = resolveTranscriptPolicy({ provider, model: name });
      const model = scriptedModel([says('{"days": 1}')], { provider, model: name, policy });
      const tools = hasTools ? [tool("read")] : [];
      const it = await openTurn({ model, tools, with: { outputSchema, thinkingLevel } });
      await it.say({ role: "user", content: "How long?" });
      await it.run();
      expect(model.asked[0]?.responseFormat).toEqual(
        isTold ? { type: "json", schema: outputSchema } : undefined,
      );
      expect(JSON.stringify(model.asked[0]?.prompt[0])).toContain("matches this JSON Schema");
      if (provider === "openai")
        expect(model.asked[0]?.providerOptions?.openai).toMatchObject({
          strictJsonSchema: false,
          store: false,
        });
    },
  );
});
