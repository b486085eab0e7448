import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from "@ai-sdk/provider";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { AssistantMessage } from "../../core/messages.ts";
import { sealEntry } from "../../core/seal.ts";
import { assistantMessageOf } from "./assistant-message.ts";

const about = { provider: "openai", api: "openai-responses", model: "gpt-5", timestamp: 7 };
const call = { type: "tool-call" as const, toolCallId: "c", toolName: "read", input: "{}" };

function answer(
  usage: LanguageModelV4Usage | undefined,
  finishReason: LanguageModelV4FinishReason = { unified: "stop", raw: "stop" },
  calls = false,
): AssistantMessage {
  const message = assistantMessageOf(calls ? [call] : [], { usage, finishReason }, about);
  const { entry } = sealEntry({ type: "message", message }, { id: "e", parentId: null, time: 1 });
  return (entry as unknown as { message: AssistantMessage }).message;
}

const counts = (
  [total, noCache, cacheRead, cacheWrite]: readonly (number | undefined)[],
  [out, text, reasoning]: readonly (number | undefined)[],
): LanguageModelV4Usage => ({
  inputTokens: { total, noCache, cacheRead, cacheWrite },
  outputTokens: { total: out, text, reasoning },
});

describe("usage and the stop reason", () => {
  test.each([
    ["Anthropic", counts([130, 100, 20, 10], [7, undefined, undefined]), [100, 7, 20, 10, 137]],
    ["Responses", counts([130, 110, 20, undefined], [7, 5, 2]), [110, 7, 20, 0, 137]],
    [
      "Google, thoughts separate from the answer",
      counts([130, 110, 20, undefined], [9, 7, 2]),
      [110, 9, 20, 0, 139],
    ],
    [
      "Mistral without a cache",
      counts([130, 130, undefined, undefined], [7, 7, undefined]),
      [130, 7, 0, 0, 137],
    ],
    ["only a total", counts([130, undefined, 20, undefined], [undefined, 5, 2]), [110, 7, 20, 0, 137]],
    ["more cached than read tokens", counts([10, -10, 20, undefined], [1, 1, 0]), [0, 1, 20, 0, 21]],
    ["nothing", counts([], []), [0, 0, 0, 0, 0]],
  ])("%s: input excludes cached tokens, and the four counts add up", (_, usage, expected) => {
    const { input, output, cacheRead, cacheWrite, totalTokens } = answer(usage).usage ?? {};
    expect([input, output, cacheRead, cacheWrite, totalTokens]).toEqual(expected);
  });

  test("keeps the provider's numbers exactly through the file", () => {
    const figure = fc.option(fc.nat(1e6), { nil: undefined });
    const list = (length: number) => fc.array(figure, { minLength: length, maxLength: length });
    const raw = fc.option(fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.nat()), { nil: undefined });
    fc.assert(
      fc.property(list(4), list(3), raw, (input, output, more) => {
        const usage = { ...counts(input, output), ...(more === undefined ? {} : { raw: more }) };
        expect(answer(usage).skein?.usage).toEqual(usage);
      }),
    );
  });

  test.each<[LanguageModelV4FinishReason["unified"], boolean, string]>([
    ["stop", false, "stop"],
    ["stop", true, "toolUse"],
    ["tool-calls", true, "toolUse"],
    ["tool-calls", false, "stop"],
    ["length", true, "length"],
    ["content-filter", false, "error"],
    ["error", true, "error"],
    ["interrupted", false, "error"],
    ["other", false, "stop"],
    ["other", true, "toolUse"],
  ])("%s, with calls %s, is %s, and the finish reason is kept", (unified, calls, stopReason) => {
    const message = answer(undefined, { unified, raw: "word" }, calls);
    expect(message.stopReason).toBe(stopReason);
    expect(message.errorMessage?.includes("(word)") ?? false).toBe(stopReason === "error");
    expect(message.skein?.finishReason).toEqual({ unified, raw: "word" });
  });

  test("keeps the response's ID, model, time and metadata, and the cost if it is known", () => {
    const response = { id: "resp_1", modelId: "gpt-5-2025", timestamp: new Date(5) };
    const providerMetadata = { openai: { responseId: "resp_1" } };
    const cost = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, total: 3 };
    const facts = { finishReason: { unified: "stop" as const, raw: undefined }, response, providerMetadata };
    expect(assistantMessageOf([], facts, { ...about, cost })).toMatchObject({
      ...about,
      usage: { cost },
      skein: {
        response: {
          id: "resp_1",
          modelId: "gpt-5-2025",
          timestamp: "1970-01-01T00:00:00.005Z",
          providerMetadata,
        },
      },
    });
  });
});
