import { describe, expect, test } from "vitest";
import { images, posted } from "../../../test/support/twin-fetch.ts";
import {
  a,
  b,
  call,
  calls,
  chat,
  check,
  expectMisfit,
  expectRefusal,
  image,
  result,
  said,
  thinking,
  user,
} from "../../../test/support/twin-mistral.ts";
import { wireFormats } from "../server/check-request.ts";

const mistral = wireFormats["mistral-conversations"];

describe("messages", () => {
  test.each([
    ["text", chat(user())],
    [
      "system and several turns of one role",
      chat({ role: "system", content: "Be kind" }, user(), user(), said(), said("x"), user()),
    ],
    ["a call and its result", chat(user(), calls(call(a)), result(a))],
    [
      "calls answered in another order",
      chat(user(), calls(call(a), call(b)), result(b, ""), result(a), said(), user()),
    ],
    [
      "text next to calls, no content, no name",
      chat(
        user(),
        { role: "assistant", tool_calls: [call(a)] },
        { role: "tool", tool_call_id: a, content: "x" },
        { ...calls(call(b)), content: "I look." },
        result(b),
      ),
    ],
    ["arguments as an object", chat(user(), calls(call(a, "look", { place: "Kyoto" })), result(a))],
    ["an assistant turn first", chat(said(), user())],
    [
      "thinking",
      chat(
        user(),
        said([
          thinking([{ type: "text", text: "Temples." }], { closed: true }),
          { type: "text", text: "Gladly." },
        ]),
        user(),
      ),
    ],
    ["a prefix to continue", chat(user(), { ...said(), prefix: true })],
    [
      "images",
      chat(
        user([
          { type: "text", text: "Where?" },
          image(images.png),
          image({ url: images.jpeg }),
          image("https://example.org/a.png"),
        ]),
      ),
    ],
    [
      "tools",
      {
        ...chat(user()),
        stream: true,
        tool_choice: "any",
        tools: [{ type: "function", function: { name: "look", parameters: {} } }],
      },
    ],
  ])("[TWA1] a valid request is accepted: %s", (_, body) => {
    expectRefusal(body, null);
  });

  test.each([
    ["a value that is not an object", null, "not_json", "model_attributes_type", []],
    ["no model", { messages: [user()] }, "missing_model", "missing", ["model"]],
    ["no messages", { model: "m" }, "missing_messages", "missing", ["messages"]],
    ["messages of another type", { model: "m", messages: {} }, "missing_messages", "list_type", ["messages"]],
    [
      "parameters of other APIs",
      { ...chat(user()), max_completion_tokens: 9 },
      "extra_field",
      "extra_forbidden",
      ["max_completion_tokens"],
    ],
    ["an invalid message", chat(7), "wrong_type", "dictionary_type", ["messages", 0]],
    [
      "a role of another API",
      chat({ role: "developer", content: "x" }),
      "bad_role",
      "union_tag_invalid",
      ["messages", 0],
    ],
    ["no role", chat({ content: "x" }), "bad_role", "union_tag_not_found", ["messages", 0]],
    [
      "a role named like an object method",
      chat({ role: "constructor", content: "x" }),
      "bad_role",
      "union_tag_invalid",
      ["messages", 0],
    ],
    [
      "fields of other APIs",
      chat(user(), { ...said(), reasoning_content: "x" }, user()),
      "extra_field",
      "extra_forbidden",
      ["messages", 1, "assistant", "reasoning_content"],
    ],
    [
      "a name of a user",
      chat({ ...user(), name: "ann" }),
      "extra_field",
      "extra_forbidden",
      ["messages", 0, "user", "name"],
    ],
    [
      "a user message without content",
      chat({ role: "user" }),
      "missing_parameter",
      "missing",
      ["messages", 0, "user", "content"],
    ],
    [
      "a result without content",
      chat(user(), calls(call(a)), result(a, null)),
      "missing_parameter",
      "missing",
      ["messages", 2, "tool", "content"],
    ],
    [
      "content of another type",
      chat(user(7)),
      "wrong_type",
      "string_type",
      ["messages", 0, "user", "content"],
    ],
    [
      "an unknown chunk",
      chat(user([{ type: "input_text", text: "x" }])),
      "bad_chunk",
      "union_tag_invalid",
      ["messages", 0, "user", "content", 0],
    ],
    [
      "a chunk without its value",
      chat(user([{ type: "text" }])),
      "bad_chunk",
      "missing",
      ["messages", 0, "user", "content", 0, "text", "text"],
    ],
    [
      "a chunk with additional fields",
      chat(user([{ type: "text", text: "x", id: 1 }])),
      "extra_field",
      "extra_forbidden",
      ["messages", 0, "user", "content", 0, "text", "id"],
    ],
    [
      "an image of another type",
      chat(user([image(7)])),
      "bad_chunk",
      "string_type",
      ["messages", 0, "user", "content", 0, "image_url", "image_url"],
    ],
    [
      "thinking as a string",
      chat(user(), said([thinking("Temples.")]), user()),
      "bad_chunk",
      "list_type",
      ["messages", 1, "assistant", "content", 0, "thinking", "thinking"],
    ],
    [
      "thinking with a signature",
      chat(user(), said([thinking([], { signature: "x" })]), user()),
      "extra_field",
      "extra_forbidden",
      ["messages", 1, "assistant", "content", 0, "thinking", "signature"],
    ],
    [
      "thinking without text",
      chat(user(), said([thinking([{ type: "text" }])]), user()),
      "bad_chunk",
      "string_type",
      ["messages", 1, "assistant", "content", 0, "thinking", "thinking", 0, "text"],
    ],
    [
      "calls of another type",
      chat(user(), { ...calls(), tool_calls: {} }),
      "bad_tool_calls",
      "list_type",
      ["messages", 1, "assistant", "tool_calls"],
    ],
    [
      "a call without function",
      chat(user(), calls({ id: a })),
      "bad_tool_calls",
      "missing",
      ["messages", 1, "assistant", "tool_calls", 0, "function"],
    ],
    [
      "arguments of another type",
      chat(user(), calls(call(a, "look", 7))),
      "bad_arguments",
      "string_type",
      ["messages", 1, "assistant", "tool_calls", 0, "function", "arguments"],
    ],
    [
      "a tool without name",
      { ...chat(user()), tools: [{ type: "function", function: {} }] },
      "bad_function_name",
      "missing",
      ["tools", 0, "function", "name"],
    ],
  ])(
    "[TWA1] a request that does not match the schema is answered with 422: %s",
    (_, body, rule, type, loc) => {
      expectMisfit(body, rule, type, loc);
    },
  );

  test.each([
    ["no content", { role: "assistant" }],
    ["an empty text", said("")],
    ["a blank text", said(" \n ")],
    ["no chunks", said([])],
    ["a blank chunk", said([thinking([]), { type: "text", text: "" }])],
    ["no calls", { ...said(""), tool_calls: [] }],
  ])("[TWA1] an assistant message without text and calls is refused: %s", (_, message) => {
    const part = "Assistant message must have either content or tool_calls, but not none.";
    expectRefusal(chat(user(), message, user()), "empty_content", part, "3240");
  });

  test.each([
    ["an empty text", user("")],
    ["no chunks", user([])],
    ["a blank chunk", user([image(images.png), { type: "text", text: " " }])],
  ])("[TWA1] an empty user message is refused: %s", (_, message) => {
    expectRefusal(chat(message), "empty_content", "User message must have content.");
  });

  test("[TWA1] a prefix must be last", () => {
    const body = chat(user(), { ...said(), prefix: true }, user());
    expectRefusal(body, "prefix_not_last", "Assistant message with prefix True must be last message", "3240");
  });
});

describe("requests", () => {
  test("only a POST on its own path is served", () => {
    expect(mistral.serves(posted("/v1/chat/completions", {}))).toBe(true);
    expect(mistral.serves({ ...posted("/v1/chat/completions", {}), method: "PUT" })).toBe(false);
  });

  test("[TWA1] a request longer than the context window is refused, including its output limit", () => {
    const long = chat(user("a".repeat(4_000)));
    expect(check(long, 1_001)).toBeNull();
    const refusal = check(long, 1_000);
    expect(refusal?.body).toEqual({
      object: "error",
      message:
        "Prompt contains 1001 tokens and 0 draft tokens, too large for model with 1000 maximum context length",
      type: "invalid_request_invalid_args",
      param: null,
      code: "3051",
    });
    expect(check({ ...long, max_tokens: 100 }, 1_101)).toBeNull();
    expect(check({ ...long, max_tokens: 100 }, 1_100)?.rule).toBe("context_length");
  });
});

describe("calls", () => {
  test.each([
    [
      "an ID in OpenAI's format",
      chat(user(), calls(call("call_1")), result("call_1")),
      "bad_call_id",
      "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
    ],
    [
      "an id of ten characters",
      chat(user(), calls(call(`${a}x`)), result(`${a}x`)),
      "bad_call_id",
      "with a length of 9",
    ],
    [
      "no id",
      chat(
        user(),
        { role: "assistant", tool_calls: [{ function: { name: "n", arguments: "{}" } }] },
        { role: "tool", content: "x" },
      ),
      "bad_call_id",
      "Tool call id has to be defined in serving mode.",
    ],
    [
      "a bad name",
      chat(user(), calls(call(a, "fs.read")), result(a)),
      "bad_function_name",
      "Function name was fs.read but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.",
    ],
    [
      "a bad name in a result",
      chat(user(), calls(call(a)), { ...result(a), name: "a b" }),
      "bad_function_name",
      "Function name was a b",
    ],
    [
      "a bad name of a tool",
      { ...chat(user()), tools: [{ type: "function", function: { name: "x".repeat(65) } }] },
      "bad_function_name",
      "maximum length of 64",
    ],
    [
      "arguments that are not JSON",
      chat(user(), calls(call(a, "look", "{")), result(a)),
      "bad_arguments",
      "JSON object",
    ],
  ])("[TWA1] IDs, names and arguments: %s", (_, body, rule, part) => {
    expectRefusal(body, rule, part, "3280");
  });
});

describe("images", () => {
  test.each([
    ["bytes of another type", images.png.replace("png", "webp"), "image_type_mismatch"],
    ["an unsupported type", images.of("image/bmp", Buffer.from("BM")), "image_type_unsupported"],
    ["invalid base64", "data:image/png;base64,****", "image_not_base64"],
    ["an invalid URL", "a.png", "image_not_base64"],
    ["an animated GIF", images.animatedGif, "image_animated"],
    [
      "more than 10 MB",
      images.of("image/jpeg", Buffer.concat([Buffer.from("ffd8ff", "hex"), Buffer.alloc(10.5e6)])),
      "images_too_large",
    ],
  ])("[TWA1] images: %s", (_, url, rule) => {
    expectRefusal(chat(user([image(url)])), rule, "", "3310");
  });

  test("[TWA1] a request has at most eight images, including those in results", () => {
    const many = (count: number) => Array.from({ length: count }, () => image(images.gif));
    expectRefusal(chat(user(many(8))), null);
    expectRefusal(chat(user(many(4)), calls(call(a)), result(a, many(4))), null);
    const body = chat(user(many(4)), calls(call(a)), result(a, many(5)));
    expectRefusal(body, "too_many_images", "Too many images in request: 9, maximum is 8", "3051");
  });
});

describe("order", () => {
  test.each([
    ["no messages", chat(), "missing_messages", "Conversation must have at least one message"],
    [
      "only an assistant message",
      chat(said()),
      "bad_first_role",
      "Conversation must start with a user message or system message",
    ],
    ["a result first", chat(result(a), user()), "bad_first_role", "Conversation must start"],
    [
      "an assistant last",
      chat(user(), said()),
      "last_message_assistant",
      "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    ],
    ["calls last", chat(user(), calls(call(a))), "last_message_assistant", "but got assistant"],
    [
      "a user after a result",
      chat(user(), calls(call(a)), result(a), user()),
      "unexpected_role",
      "Unexpected role 'user' after role 'tool'",
    ],
    [
      "a result after a user",
      chat(user(), result(a)),
      "unexpected_role",
      "Unexpected role 'tool' after role 'user'",
    ],
    [
      "a system message after an answer",
      chat(user(), said(), { role: "system", content: "x" }, user()),
      "unexpected_role",
      "Unexpected role 'system' after role 'assistant'",
    ],
  ])("[TWA1] order: %s", (_, body, rule, part) => {
    expectRefusal(body, rule, part, "3230");
  });
});

describe("pairing", () => {
  test.each([
    [
      "a call without result",
      chat(user(), calls(call(a), call(b)), result(a), said(), user()),
      "tool_call_without_result",
      "Not the same number of function calls and responses",
    ],
    [
      "no result at all",
      chat(user(), calls(call(a)), user()),
      "tool_call_without_result",
      "Not the same number",
    ],
    [
      "a missing result at the end",
      chat(user(), calls(call(a), call(b)), result(a)),
      "tool_call_without_result",
      "Not the same number",
    ],
    [
      "a result without a call",
      chat(user(), calls(call(a)), result(b)),
      "tool_result_without_call",
      `Unexpected tool call id ${b} in tool results`,
    ],
    [
      "a result after an answer without calls",
      chat(user(), said(), result(a)),
      "tool_result_without_call",
      `Unexpected tool call id ${a}`,
    ],
    [
      "a result without an ID",
      chat(user(), calls(call(a)), { role: "tool", content: "x" }),
      "tool_result_without_call",
      "Unexpected tool call id None in tool results",
    ],
    [
      "a result twice",
      chat(user(), calls(call(a)), result(a), result(a)),
      "duplicate_call_id",
      `Duplicate tool call id ${a} in tool results`,
    ],
    [
      "an id twice in one turn",
      chat(user(), calls(call(a), call(a)), result(a)),
      "duplicate_call_id",
      `Duplicate tool call id ${a} in assistant message`,
    ],
    [
      "an id twice in the request",
      chat(user(), calls(call(a)), result(a), calls(call(a)), result(a)),
      "duplicate_call_id",
      "in assistant message",
    ],
  ])("[TWA1] calls and results: %s", (_, body, rule, part) => {
    expectRefusal(body, rule, part, "3230");
  });
});

describe("values of other types", () => {
  /** Requests in which one field has a value of the wrong type or is missing. */

  const called = (more: object) => chat(user(), calls({ ...call(a), ...more }), result(a));
  const at = ["messages", 1, "assistant", "tool_calls", 0];
  const thought = (...list: unknown[]) => chat(user(), said([thinking(list)]), user());
  const inThinking = ["messages", 1, "assistant", "content", 0, "thinking", "thinking", 0];
  const tools = (...list: unknown[]) => ({ ...chat(user()), tools: list });

  test.each([
    [{ model: 7, messages: [] }, "missing_model", "string_type", ["model"]],
    [chat(user(["x"])), "bad_chunk", "dictionary_type", ["messages", 0, "user", "content", 0]],
    [chat(user([{ text: "x" }])), "bad_chunk", "union_tag_not_found", ["messages", 0, "user", "content", 0]],
    [chat(user(), calls("x")), "bad_tool_calls", "dictionary_type", at],
    [called({ caller: 1 }), "extra_field", "extra_forbidden", [...at, "caller"]],
    [called({ function: "look" }), "bad_tool_calls", "dictionary_type", [...at, "function"]],
    [called({ function: { name: "look" } }), "bad_arguments", "missing", [...at, "function", "arguments"]],
    [
      called({ function: { name: "look", arguments: "{}", id: 1 } }),
      "extra_field",
      "extra_forbidden",
      [...at, "function", "id"],
    ],
    [called({ function: { arguments: "{}" } }), "bad_function_name", "missing", [...at, "function", "name"]],
    [
      called({ function: { name: 7, arguments: "{}" } }),
      "bad_function_name",
      "string_type",
      [...at, "function", "name"],
    ],
    [thought("x"), "bad_chunk", "dictionary_type", inThinking],
    [thought({ type: "image_url" }), "bad_chunk", "union_tag_invalid", inThinking],
    [{ ...chat(user()), tools: {} }, "bad_tools", "list_type", ["tools"]],
    [tools("x"), "bad_tools", "dictionary_type", ["tools", 0]],
    [tools({ type: "function" }), "bad_tools", "missing", ["tools", 0, "function"]],
  ])("[TWA1] %#: each path reports what is wrong with it", (body, rule, type, loc) => {
    expectMisfit(body, rule, type, loc);
  });

  test("[TWA1] accepts references in thinking, and the server's own tools", () => {
    expect(check(thought({ type: "reference", reference_ids: [1] }, { type: "text", text: "x" }))).toBeNull();
    expect(check(tools({ type: "web_search" }))).toBeNull();
    expect(
      check(chat(user([{ type: "document_url", document_url: "https://example.org/a.pdf" }]))),
    ).toBeNull();
  });
});
