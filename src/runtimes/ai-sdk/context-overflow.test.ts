import { describe, expect, test } from "vitest";
import { startTwin } from "../../testing/server/start-twin.ts";
import { resolveTranscriptPolicy } from "../../transcript/policy.ts";
import { openModel } from "../models/open-model.ts";
import { isContextOverflow } from "./context-overflow.ts";
import { modelRequest } from "./model-request.ts";

const models = [
  ["anthropic", "claude-sonnet-4-5"],
  ["google", "gemini-2.5-pro"],
  ["openai", "gpt-5"],
  ["local", "qwen3"],
  ["mistral", "mistral-large-latest"],
] as const;

async function errorOf(provider: string, model: string, text: string): Promise<unknown> {
  const policy = resolveTranscriptPolicy({ provider, model });
  const twin = await startTwin({ api: policy.api, contextWindow: 20_000 });
  try {
    const opened = await openModel(policy, { apiKey: "any", baseUrl: twin.url });
    const transcript = [{ role: "user" as const, content: text }];
    const { options } = modelRequest({ transcript, policy, maxOutputTokens: 1000 });
    const { stream } = await opened.doStream(options);
    for await (const part of stream) if (part.type === "error") return part.error;
    return null;
  } catch (error) {
    return error;
  } finally {
    await twin.close();
  }
}

describe("[CNV16] a request beyond the context window is known by the refusal", () => {
  test.each(models)("%s", async (provider, model) => {
    expect(await errorOf(provider, model, "Short.")).toBeNull();
    const error = await errorOf(provider, model, "a long story ".repeat(20_000));
    expect(error).not.toBeNull();
    expect(isContextOverflow(error)).toBe(true);
  });

  test.each([
    { statusCode: 429, message: "Too many tokens per minute" },
    { statusCode: 400, message: "messages: roles must alternate" },
    { statusCode: 500, message: "Internal error" },
    new Error("socket hang up"),
    null,
    "prompt is too long",
  ])("and nothing else is: %j", (error) => {
    expect(isContextOverflow(error)).toBe(false);
  });

  test("a cause is looked at, a cycle of causes is not followed for ever", () => {
    const inner = { message: "prompt is too long: 210000 tokens > 200000 maximum" };
    expect(isContextOverflow({ message: "the call failed", cause: inner })).toBe(true);
    const round: { message: string; cause?: unknown } = { message: "x" };
    round.cause = round;
    expect(isContextOverflow(round)).toBe(false);
  });
});
