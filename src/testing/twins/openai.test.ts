import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chat, user as chatUser, check as checkChat } from "../../../test/support/twin-chat.ts";
import { posted } from "../../../test/support/twin-fetch.ts";
import { ask, check as checkResponses, user } from "../../../test/support/twin-responses.ts";
import { wireFormats } from "../server/check-request.ts";
import type { WireFormat } from "./contract.ts";

const mistral = wireFormats["mistral-conversations"];
const openaiChat = wireFormats["openai-completions"];
const openaiResponses = wireFormats["openai-responses"];

describe("requests", () => {
  /** Properties that hold for all three formats. */

  const formats: [name: string, format: WireFormat, path: string][] = [
    ["OpenAI Chat Completions", openaiChat, "/v1/chat/completions"],
    ["OpenAI Responses", openaiResponses, "/v1/responses"],
    ["Mistral", mistral, "/v1/chat/completions"],
  ];
  const limits = { contextWindow: 1_000_000 };

  /** Values for the fields that the formats check, both valid and invalid. */
  const words = fc.constantFrom(
    ...["user", "assistant", "tool", "system", "text", "function", "function_call", "function_call_output"],
    ...["reasoning", "message", "item_reference", "image_url", "input_image", "input_text", "output_text"],
    ...["thinking", "rs_1", "a", "", " ", "aaaaaaaa1", "{}", "data:image/png;base64,AAAA", "constructor"],
  );
  const keys = fc.constantFrom(
    ...["role", "content", "type", "text", "id", "call_id", "tool_call_id", "tool_calls", "function", "name"],
    ...[
      "arguments",
      "output",
      "summary",
      "encrypted_content",
      "image_url",
      "url",
      "thinking",
      "prefix",
      "__proto__",
    ],
    ...["toString", "input", "custom", "refusal"],
  );
  const { value: anyValue } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "medium" },
      words,
      fc.constantFrom(null, true, 7, 1.5),
      fc.dictionary(keys, tie("value"), { noNullPrototype: true }),
      fc.array(tie("value"), { maxLength: 4 }),
    ),
  }));
  const anyBody = fc.oneof(
    fc.jsonValue(),
    fc.record({
      model: fc.constantFrom("m", "", 7, undefined),
      messages: fc.array(anyValue),
      tools: fc.option(anyValue, { nil: undefined }),
      stream_options: fc.option(anyValue, { nil: undefined }),
    }),
    fc.record({
      model: fc.constant("m"),
      input: fc.array(anyValue),
      conversation: anyValue,
      tools: anyValue,
    }),
    fc.record({ model: fc.constant("m"), input: fc.array(anyValue) }),
    fc.record({ model: fc.constant("m"), messages: fc.array(anyValue) }),
  );

  test.each(formats)("%s: any body is accepted or refused, and stays unchanged", (_, format, path) => {
    fc.assert(
      fc.property(anyBody, (given) => {
        const text = JSON.stringify(given) ?? "null";
        const body: unknown = JSON.parse(text);
        const refusal = format.check(posted(path, body), limits);
        expect(JSON.stringify(body)).toBe(text);
        if (refusal === null) return;
        expect([400, 404, 422]).toContain(refusal.status);
        expect(refusal.rule).toMatch(/^[a-z_]+$/);
        JSON.stringify(refusal.body);
      }),
    );
  });

  test.each([
    [
      "429 of OpenAI",
      openaiChat,
      429,
      { error: { message: "m", type: "requests", param: null, code: "rate_limit_exceeded" } },
    ],
    [
      "401 of OpenAI",
      openaiResponses,
      401,
      { error: { message: "m", type: "invalid_request_error", param: null, code: "invalid_api_key" } },
    ],
    [
      "500 of OpenAI",
      openaiChat,
      500,
      { error: { message: "m", type: "server_error", param: null, code: "server_error" } },
    ],
    [
      "502 of OpenAI",
      openaiResponses,
      502,
      { error: { message: "m", type: "server_error", param: null, code: "server_error" } },
    ],
    [
      "503 of OpenAI",
      openaiChat,
      503,
      {
        error: { message: "m", type: "service_unavailable_error", param: null, code: "server_is_overloaded" },
      },
    ],
    [
      "418 of OpenAI",
      openaiChat,
      418,
      { error: { message: "m", type: "invalid_request_error", param: null, code: null } },
    ],
    [
      "429 of Mistral",
      mistral,
      429,
      { object: "error", message: "m", type: "rate_limited", param: null, code: "1300" },
    ],
    [
      "503 of Mistral",
      mistral,
      503,
      { object: "error", message: "m", type: "service_unavailable", param: null, code: "3800" },
    ],
    [
      "504 of Mistral",
      mistral,
      504,
      { object: "error", message: "m", type: "server_error", param: null, code: null },
    ],
    [
      "418 of Mistral",
      mistral,
      418,
      { object: "error", message: "m", type: "invalid_request_error", param: null, code: null },
    ],
  ])("the body of an error of the server: %s", (_, format, status, body) => {
    expect(format.errorBody(status, "m")).toEqual(body);
  });
});

describe("efforts", () => {
  const refusalsOf = (model: string, effort: unknown) => [
    checkResponses({ ...ask(user()), model, reasoning: { effort } }),
    checkChat({ ...chat(chatUser()), model, reasoning_effort: effort }),
  ];

  test("[TWA1] an effort that the model does not support is refused in the server's words", () => {
    const [refusal] = refusalsOf("gpt-5.1-codex", "none");
    expect(refusal).toEqual({
      status: 400,
      rule: "unsupported_effort",
      body: {
        error: {
          message:
            "Unsupported value: 'none' is not supported with the 'gpt-5.1-codex' model. Supported values are: 'low', 'medium', and 'high'.",
          type: "invalid_request_error",
          param: "reasoning.effort",
          code: "unsupported_value",
        },
      },
    });
  });

  const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
  test.each([
    ["o1", "low medium high"],
    ["o1-mini", ""],
    ["o3-2025-04-16", "low medium high"],
    ["o4-mini", "low medium high"],
    ["gpt-5", "minimal low medium high"],
    ["gpt-5-nano-2025-08-07", "minimal low medium high"],
    ["gpt-5-pro", "high"],
    ["gpt-5-codex", "low medium high"],
    ["gpt-5.1", "none low medium high"],
    ["gpt-5.1-chat-latest", "medium"],
    ["gpt-5.1-codex-max", "low medium high xhigh"],
    ["gpt-5.2-pro", "medium high xhigh"],
    ["gpt-5.4-mini", "none low medium high xhigh"],
    ["gpt-5.6-sol", "none low medium high xhigh max"],
    ["gpt-9", efforts.join(" ")],
  ])("[TWA1] %s accepts %s", (model, taken) => {
    for (const each of [0, 1]) {
      const found = efforts.filter((effort) => refusalsOf(model, effort)[each] === null);
      expect(found.join(" ")).toBe(taken);
    }
  });

  test("[TWA1] a request without an effort is not refused", () => {
    for (const effort of [undefined, null]) expect(refusalsOf("gpt-5-pro", effort)).toEqual([null, null]);
  });
});
