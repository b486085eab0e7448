import { spawn } from "node:child_process";
import { once } from "node:events";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { generateText, isStepCount, jsonSchema, streamText, ToolLoopAgent, tool } from "ai";
import { afterEach, describe, expect, test } from "vitest";
import { openLoop } from "../../src/entry-ai-sdk.ts";
import { scriptedModel } from "../../src/entry-testing.ts";
import { defineTool } from "../../src/index.ts";
import { supportProgram } from "../support/programs.ts";
import { answering, closeAll, newFolder, withScript } from "../support/skein.ts";

afterEach(closeAll);

const trip = { sessionId: "trip" };
const inputSchema = jsonSchema<object>({ type: "object" });
const look = tool({ description: "Looks.", inputSchema, execute: async () => "three gardens" });
const twoSteps = [{ calls: [{ name: "look" }] }, { text: "Three gardens." }];
const afterTwoSteps = [
  "user: Plan",
  "assistant: (look)",
  "result: three gardens",
  "assistant: Three gardens.",
];
const stopWhen = isStepCount(5);
const rolesIn = (prompt: LanguageModelV4Prompt | undefined) => prompt?.map(({ role }) => role);

describe("a loop of your own with the AI SDK", () => {
  test("[AIS1] generateText answers with the session's earlier messages, and its steps are kept", async () => {
    const { skein, lines } = await withScript(answering());
    const model = scriptedModel([...twoSteps, { text: "By train." }]);
    const loop = await openLoop(skein, trip, { model });
    await generateText({ model, tools: { look }, stopWhen, ...(await loop.start("Plan")) });
    await loop.end();
    expect(await lines("trip")).toEqual(afterTwoSteps);
    const { text } = await generateText({ model, tools: { look }, stopWhen, ...(await loop.start("How?")) });
    await loop.end();
    expect(text).toBe("By train.");
    expect(rolesIn(model.requests.at(-1)?.prompt)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "user",
    ]);
    expect(await lines("trip")).toEqual([...afterTwoSteps, "user: How?", "assistant: By train."]);
  });

  test("[AIS1] streamText and an agent work the same way", async () => {
    const { skein, lines } = await withScript(answering());
    const model = scriptedModel([...twoSteps, ...twoSteps]);
    const loop = await openLoop(skein, trip, { model });
    await streamText({ model, tools: { look }, stopWhen, ...(await loop.start("Plan")) }).consumeStream();
    await loop.end();
    const agent = new ToolLoopAgent({ model, tools: { look, ...loop.tools } });
    await agent.generate(await loop.start("Plan"));
    await loop.end();
    expect(await lines("trip")).toEqual([...afterTwoSteps, ...afterTwoSteps]);
  });

  test("[AIS2] the messages follow the rules of the model's provider", async () => {
    const { skein } = await withScript(answering());
    const session = skein.session(trip);
    await session.append([
      { role: "user", content: "Plan" },
      {
        role: "assistant",
        content: [{ type: "tool-call", toolCallId: "a.b:c", toolName: "look", input: {} }],
      },
      { role: "user", content: "Never mind" },
    ]);
    const of = async (provider: string, modelId: string) => {
      const model = { ...scriptedModel([]), provider, modelId };
      const loop = await openLoop(skein, trip, { model });
      return { messages: await loop.messages(), xray: await loop.xray() };
    };
    const claude = await of("anthropic.messages", "claude-sonnet-4-5");
    const result = claude.messages[2]?.content[0];
    expect(claude.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
    expect(result).toMatchObject({ type: "tool-result", toolCallId: expect.stringMatching(/^[\w-]+$/) });
    expect(claude.xray.request).toMatchObject({ provider: "anthropic", api: "anthropic-messages" });
    expect(claude.xray.changes.map(({ step }) => step)).toContain("sanitizeToolCalls");
    const chat = await of("openai.chat", "gpt-5");
    expect(chat.xray.request.api).toBe("openai-completions");
    expect((await of("gateway", "openai/gpt-5")).xray.request).toMatchObject({ provider: "openai" });
  });

  test("[AIS3] after its process was killed, a loop continues after the last finished step", async () => {
    const dir = newFolder();
    const child = spawn(process.execPath, [supportProgram("ai-sdk-child"), dir], { stdio: "inherit" });
    const [, signal] = (await once(child, "close")) as [unknown, string];
    expect(signal).toBe("SIGKILL");
    const { skein, lines } = await withScript(answering(), {}, { dir });
    const model = scriptedModel([{ text: "Three gardens." }]);
    const loop = await openLoop(skein, { userId: "ann", ...trip }, { model });
    expect(await loop.isUnfinished()).toBe(true);
    await generateText({ model, tools: { look }, stopWhen, ...(await loop.start()) });
    await loop.end();
    expect(rolesIn(model.requests[0]?.prompt)).toEqual(["user", "assistant", "tool"]);
    expect(await lines("trip", "ann")).toEqual(["user: Plan three days in Kyoto", ...afterTwoSteps.slice(1)]);
    expect(await loop.isUnfinished()).toBe(false);
    await expect(loop.start()).rejects.toMatchObject({ code: "conflict" });
  });

  test("[AIS4] a step that cannot be recorded aborts the loop", async () => {
    const { skein, lines } = await withScript(answering());
    const takes = skein.hooks;
    takes.on("before_message_write", ({ message }) =>
      message.role === "toolResult" ? { refuse: "no results today" } : undefined,
    );
    const model = scriptedModel(twoSteps);
    const loop = await openLoop(skein, trip, { model });
    const call = await loop.start("Plan");
    await generateText({ model, tools: { look }, stopWhen, ...call }).catch(() => undefined);
    expect(call.abortSignal.aborted).toBe(true);
    expect(model.requests).toHaveLength(1);
    await expect(loop.end()).rejects.toThrow(/no results today/);
    expect(await lines("trip")).toEqual(["user: Plan", "assistant: (look)"]);
  });

  test("[AIS4] a session with an active run refuses a loop before the model is asked", async () => {
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      execute: (_, { signal }) => new Promise((resolve) => signal?.addEventListener("abort", resolve)),
    });
    const { skein, until } = await withScript([{ calls: [{ name: "wait" }] }], { tools: [wait] });
    skein
      .session(trip)
      .send("Go")
      .result.catch(() => undefined);
    await until("run.tool");
    const model = scriptedModel(twoSteps);
    const loop = await openLoop(skein, trip, { model });
    await expect(loop.start("Plan")).rejects.toMatchObject({ code: "conflict" });
  });

  test("[AIS5] the session tools work in the loop, and its messages are found by search", async () => {
    const { skein } = await withScript(answering());
    const model = scriptedModel([
      { calls: [{ name: "sessions_send", arguments: { sessionKey: "main", message: "Hi" } }] },
      { text: "Sent to the lantern keeper." },
    ]);
    const loop = await openLoop(skein, trip, { model });
    await generateText({ model, tools: loop.tools, stopWhen, ...(await loop.start("Tell main")) });
    await loop.end();
    const { hits } = await skein.sessions.search({ query: "lantern" });
    expect(hits).toMatchObject([{ sessionId: "trip" }]);
    const copy = await loop.session.fork({});
    expect((await skein.sessions.list({})).sessions.map(({ key }) => key)).toContain(copy.key);
  });
});
