import { describe, expect, test } from "vitest";
import { resolveTranscriptPolicy } from "../../src/index.ts";

const row = (provider: string, api?: string) =>
  resolveTranscriptPolicy({ provider, model: "m", ...(api === undefined ? {} : { api }) });

describe("[TR1] requirements of a provider", () => {
  test.each([
    [
      "anthropic",
      undefined,
      "anthropic-messages",
      "full",
      "strict",
      "synthetic",
      "signed",
      "user",
      "anthropic",
    ],
    ["google", undefined, "google-generative-ai", "full", "strict", "synthetic", "base64", "user", "gemini"],
    ["openai", undefined, "openai-responses", "images-only", "kept", "drop", "items", "any", "any"],
    [
      "openai",
      "openai-completions",
      "openai-completions",
      "images-only",
      "strict",
      "drop",
      "none",
      "any",
      "any",
    ],
    ["mistral", undefined, "mistral-conversations", "full", "strict9", "drop", "plain", "any", "mistral"],
    ["ollama", undefined, "openai-completions", "images-only", "strict", "drop", "none", "any", "any"],
    [
      "amazon",
      "bedrock-converse-stream",
      "anthropic-messages",
      "full",
      "strict",
      "synthetic",
      "signed",
      "user",
      "anthropic",
    ],
    ["x", "something-new", "openai-completions", "images-only", "strict", "drop", "none", "any", "any"],
    ["constructor", "toString", "openai-completions", "images-only", "strict", "drop", "none", "any", "any"],
  ])("%s %s", (provider, api, ...expected) => {
    const policy = row(provider, api);
    const { sanitizeMode, toolCallIds, missingResults, thinking, firstTurn, turns } = policy;
    expect([policy.api, sanitizeMode, toolCallIds, missingResults, thinking, firstTurn, turns]).toEqual(
      expected,
    );
    expect(policy.repairToolPairing).toBe(true);
  });

  test("overrides win, and omitted ones do not", () => {
    const overrides = { turns: "anthropic", images: null, thinking: undefined } as never;
    const policy = resolveTranscriptPolicy({ provider: "local", model: "m", overrides });
    expect(policy).toMatchObject({ turns: "anthropic", images: null, thinking: "none" });
  });
});
