import { Check } from "typebox/value";
import { describe, expect, test } from "vitest";
import { assistantMessage } from "../../test/support/session-text.ts";
import { png as soundPng } from "../../test/transcript/conversation.ts";
import { transcriptOf } from "../../test/transcript/generate.ts";
import { anySigner } from "../../test/transcript/signer.ts";
import type { SessionContext } from "../core/context.ts";
import { present } from "../core/present.ts";
import { SessionTree } from "../core/tree.ts";
import { ContextPayloadSchema } from "../protocol/session-views.ts";
import { estimateTokens, tokensByPart } from "../transcript/estimate-tokens.ts";
import { modelInfo } from "../transcript/model-table.ts";
import { resolveTranscriptPolicy } from "../transcript/policy.ts";
import { prepareTranscript } from "../transcript/steps/prepare-transcript.ts";
import { textTokens } from "../transcript/text-tokens.ts";
import { ownModel, xray } from "./xray.ts";

const claude = { provider: "anthropic", model: "claude-sonnet-4-5" };
const png = { type: "image" as const, data: "iVBORw0KGgo=", mimeType: "image/png" };

function contextOf(messages: SessionContext["messages"]): SessionContext {
  return {
    messages,
    entryIds: messages.map((_, index) => `e${index}`),
    model: null,
    thinkingLevel: "off",
    system: null,
    cut: null,
    diagnostics: [],
  };
}

describe("the X-ray", () => {
  test("is the result of the pipeline for that model, and matches its schema", async () => {
    for (let seed = 0; seed < 200; seed++) {
      const { messages } = transcriptOf(seed, anySigner);
      const context = contextOf(messages);
      for (const model of [claude, { provider: "local", model: "qwen3" }]) {
        const seen = await xray(context, model);
        const { entryIds } = context;
        const policy = resolveTranscriptPolicy(model);
        const known = modelInfo(model.provider, model.model);
        const { messages: request, changes } = await prepareTranscript(messages, policy, {
          entryIds,
          ...present({ contextWindow: known?.contextWindow }),
        });
        expect(seen.request.messages).toEqual(request);
        expect(seen.changes).toMatchObject(changes);
        expect(Check(ContextPayloadSchema, JSON.parse(JSON.stringify(seen)))).toBe(true);
      }
    }
  });

  test("is the same for a session, for any object with a context, and for the context; the session is unchanged", async () => {
    const tree = SessionTree.create({ cwd: "/w" });
    tree.append({ type: "message", message: { role: "user", content: "Hello" } });
    tree.append({ type: "message", message: assistantMessage("Hi.") });
    const before = tree.encode();
    const seen = await xray(tree, claude);
    expect(await xray(tree.context(), claude)).toEqual(seen);
    expect(await xray({ context: async () => tree.context() }, claude)).toEqual(seen);
    expect(tree.encode()).toEqual(before);
    expect(seen.changes.map(({ step, entryId }) => [step, entryId])).toEqual([
      ["validateTurns", tree.leafId],
    ]);
  });

  test("unknown values are absent, and given values override the session's", async () => {
    const context = {
      ...contextOf([{ role: "user", content: "Hello" }]),
      system: "Own.",
      thinkingLevel: "low",
    };
    expect((await xray({ ...context, system: null }, claude)).request).toEqual({
      ...claude,
      api: "anthropic-messages",
      thinkingLevel: "low",
      messages: [{ role: "user", content: "Hello" }],
    });
    const tools = [{ name: "read", inputSchema: { type: "object" } }];
    const options = { system: "Given.", thinkingLevel: "high", tools, contextWindow: 1000 };
    expect(await xray(context, claude, options)).toMatchObject({
      request: { system: "Given.", thinkingLevel: "high", tools },
      tokens: { window: 1000 },
    });
    expect((await xray(context, claude)).request.system).toBe("Own.");
    expect((await xray(context, { provider: "local", model: "qwen3" })).tokens).not.toHaveProperty("window");
  });

  test("uses known properties of a model: its window, and whether it accepts images", async () => {
    const image = { ...png, data: soundPng };
    const context = contextOf([{ role: "user", content: [{ type: "text", text: "Look" }, image] }]);
    expect((await xray(context, "openai/gpt-5")).tokens.window).toBe(400_000);
    expect((await xray(context, "openai/gpt-5", { contextWindow: 9 })).tokens.window).toBe(9);
    const images = async (model: string, options = {}) =>
      JSON.stringify((await xray(context, model, options)).request.messages).split('"image"').length - 1;
    expect(await images("openai/gpt-5")).toBe(1);
    expect(await images("openai/o3-mini")).toBe(0);
    expect(await images("openai/o3-mini", { vision: true })).toBe(1);
    expect(await images("openai/gpt-5", { vision: false })).toBe(0);
    const { images: limits } = resolveTranscriptPolicy({ provider: "openai", model: "gpt-5" });
    expect(await images("openai/o3-mini", { overrides: { images: limits } })).toBe(1);
  });

  test("passes options and findings on", async () => {
    const call = { type: "toolCall" as const, id: "toolu_1", name: "gone", arguments: {} };
    const diagnostics = [{ code: "corrupt_line" as const, note: "a line", line: 3 }];
    const context = {
      ...contextOf([
        { role: "user", content: [{ type: "text", text: "Look" }] },
        { role: "assistant", content: [call] },
        { role: "toolResult", toolCallId: "toolu_1", content: [{ type: "text", text: "x" }] },
      ]),
      diagnostics,
    };
    const seen = await xray(context, claude, { tools: [] });
    expect(seen.changes).toContainEqual(expect.objectContaining({ kind: "calls_to_text", entryId: "e1" }));
    expect(seen.diagnostics).toEqual(diagnostics);
    const kept = await xray(context, claude, { tools: [], overrides: { callsWithoutTools: "native" } });
    expect(kept.changes.map(({ kind }) => kind)).not.toContain("calls_to_text");
  });

  test("tokens by part add up to the estimate of the whole", async () => {
    for (let seed = 0; seed < 200; seed++) {
      const context = contextOf(transcriptOf(seed, anySigner).messages);
      const { request, tokens } = await xray(context, claude);
      const { total, window: _, ...parts } = tokens;
      expect(total).toBe(estimateTokens(request.messages));
      expect(Object.values(parts).reduce((sum, each) => sum + each, 0)).toBe(total);
    }
  });

  test("each part has its own estimate", () => {
    const summary = { role: "compactionSummary" as const, summary: "s".repeat(400), timestamp: 1 };
    const said = { role: "user" as const, content: [{ type: "text" as const, text: "u".repeat(40) }, png] };
    const answer = {
      role: "assistant" as const,
      content: [
        { type: "thinking" as const, thinking: "t".repeat(80) },
        { type: "text" as const, text: "a".repeat(120) },
        { type: "toolCall" as const, id: "c", name: "read", arguments: {} },
      ],
    };
    const result = {
      role: "toolResult" as const,
      toolCallId: "c",
      content: [{ type: "text" as const, text: "r".repeat(200) }],
    };
    const context = [summary, said, answer, result];
    const summed = `Summary of the conversation so far:\n<summary>\n${summary.summary}\n</summary>`;
    const first = {
      role: "user" as const,
      content: [{ type: "text" as const, text: summed }, ...said.content],
    };
    const tokens = tokensByPart({
      messages: [first, answer, result],
      context,
      system: "y".repeat(60),
      tools: [{ name: "read" }],
      window: 1000,
    });
    const message = estimateTokens([{ role: "user", content: [] }]);
    expect(tokens).toMatchObject({
      system: textTokens("y".repeat(60)),
      summary: textTokens(summed),
      user: message + textTokens("u".repeat(40)),
      assistant: message + textTokens("a".repeat(120)),
      thinking: textTokens("t".repeat(80)),
      toolResults: message + textTokens("r".repeat(200)),
      window: 1000,
    });
    for (const part of ["tools", "toolCalls", "images"] as const) expect(tokens[part]).toBeGreaterThan(0);
    expect(tokensByPart({ messages: [], context: [] })).toEqual({
      system: 0,
      tools: 0,
      user: 0,
      assistant: 0,
      thinking: 0,
      toolCalls: 0,
      toolResults: 0,
      images: 0,
      total: 0,
    });
  });

  test("uses the session's own model, in the format last used", () => {
    const context = contextOf([assistantMessage("Hi."), { role: "user", content: "Go" }]);
    expect(ownModel(context)).toBeNull();
    const model = { provider: "anthropic", modelId: "claude-x" };
    expect(ownModel({ ...context, model })).toEqual({
      provider: "anthropic",
      model: "claude-x",
      api: "anthropic-messages",
    });
    const other = { provider: "local", modelId: "qwen3" };
    expect(ownModel({ ...context, model: other })).toEqual({ provider: "local", model: "qwen3" });
  });
});
