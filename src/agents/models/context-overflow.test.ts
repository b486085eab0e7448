import { describe, expect, test } from "vitest";
import { startTwin } from "../../testing/server/start-twin.ts";
import { resolveTranscriptPolicy } from "../../transcript/policy.ts";
import { isContextOverflow } from "./context-overflow.ts";
import { modelRequest } from "./model-request.ts";
import { openModel } from "./open-model.ts";

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

describe("[OVF1] [OVF1] a request beyond the context window is recognized by the provider's error", () => {
  test.each(models)("%s", async (provider, model) => {
    expect(await errorOf(provider, model, "Short.")).toBeNull();
    const error = (await errorOf(provider, model, "a long story ".repeat(20_000))) as Error & {
      statusCode: number;
    };
    expect(isContextOverflow(error.statusCode ?? null, [error.message])).toBe(true);
  });

  test.each([
    [429, "Too many tokens per minute"],
    [400, "messages: roles must alternate"],
    [500, "Internal error"],
    [null, "socket hang up"],
  ])("is not recognized in %j", (status, text) => {
    expect(isContextOverflow(status, [text])).toBe(false);
  });
});
