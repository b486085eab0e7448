import { describe, expect, test } from "vitest";
import { images, posted } from "../../../test/support/twin-fetch.ts";
import {
  ask,
  call,
  check,
  expectRefusal,
  image,
  output,
  reasoning,
  said,
  user,
} from "../../../test/support/twin-responses.ts";
import { wireFormats } from "../server/check-request.ts";

const openaiResponses = wireFormats["openai-responses"];

describe("requests", () => {
  test("only a POST on its own path is served", () => {
    expect(openaiResponses.serves(posted("/v1/responses", {}))).toBe(true);
    expect(openaiResponses.serves(posted("/v1/chat/completions", {}))).toBe(false);
  });

  test.each([
    ["a text", { model: "gpt-5", input: "Plan" }],
    ["the metadata of Codex", { model: "gpt-5", input: "Plan", client_metadata: { session_id: "a" } }],
    [
      "messages",
      ask(
        { role: "developer", content: "Be kind" },
        user(),
        said(),
        user([{ type: "input_text", text: "x" }]),
      ),
    ],
    [
      "typed messages",
      ask(
        { type: "message", ...user() },
        {
          type: "message",
          id: "msg_1",
          status: "completed",
          role: "assistant",
          content: [{ type: "output_text", text: "x", annotations: [] }],
        },
        user(),
      ),
    ],
    ["a call and its output", ask(user(), call("a"), output("a"))],
    [
      "outputs separate from their calls",
      ask(user(), call("a"), call("b"), output("b", ""), user(), output("a")),
    ],
    [
      "parts and images in an output",
      ask(
        user(),
        call("a"),
        output("a", [
          { type: "input_text", text: "" },
          { type: "input_image", image_url: images.png },
        ]),
      ),
    ],
    [
      "reasoning before its result",
      ask(user(), reasoning("rs_1"), said(), user(), reasoning("rs_2"), call("a"), output("a")),
    ],
    [
      "reasoning twice before a call",
      ask(user(), reasoning("rs_1"), reasoning("rs_2"), call("a"), output("a")),
    ],
    ["reasoning without an ID", ask(user(), reasoning("rs_1", { id: undefined }), said(), user())],
    ["reasoning if items are stored", { ...ask(user(), reasoning("rs_1"), said(), user()), store: true }],
    [
      "a custom call",
      ask(
        user(),
        { type: "custom_tool_call", call_id: "a", name: "c", input: "x" },
        { type: "custom_tool_call_output", call_id: "a", output: "y" },
      ),
    ],
    [
      "an item of a hosted tool",
      ask(user(), { type: "web_search_call", id: "ws_1", status: "completed" }, said(), user()),
    ],
    [
      "images",
      ask(
        image(images.webp),
        image("https://example.org/a.png"),
        user([{ type: "input_image", file_id: "file-1" }]),
      ),
    ],
    [
      "tools",
      {
        ...ask(user()),
        stream: true,
        tools: [{ type: "function", name: "look", parameters: {} }, { type: "web_search" }],
      },
    ],
  ])("[TWA1] a valid request is accepted: %s", (_, body) => {
    expectRefusal(body, null);
  });

  test.each([
    ["a value that is not an object", [], "not_json", "could not parse", null],
    ["no model", { input: "x" }, "missing_model", "Missing required parameter: 'model'.", "model"],
    ["no input", { model: "m" }, "empty_input", "Missing required parameter: 'input'.", "input"],
    [
      "an empty input",
      ask(),
      "empty_input",
      `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`,
      null,
    ],
    ["a blank input", { model: "m", input: " " }, "empty_input", "empty string", "input"],
    ["an input of another type", { model: "m", input: 7 }, "empty_input", "but got an integer", "input"],
    [
      "an unknown parameter",
      { ...ask(user()), messages: [] },
      "unknown_parameter",
      "Unknown parameter: 'messages'.",
      "messages",
    ],
    [
      "too few output tokens",
      { ...ask(user()), max_output_tokens: 15 },
      "max_output_tokens",
      "Expected a value >= 16, but got 15 instead.",
      "max_output_tokens",
    ],
    [
      "an earlier response",
      { ...ask(user()), previous_response_id: "resp_1" },
      "unknown_response",
      "Previous response with id 'resp_1' not found.",
      "previous_response_id",
    ],
    ["tools of another type", { ...ask(user()), tools: {} }, "bad_tools", "array of objects", "tools"],
    [
      "a tool with a bad name",
      { ...ask(user()), tools: [{ type: "function", name: "a.b" }] },
      "bad_function_name",
      "does not match pattern",
      "tools[0].name",
    ],
    ["an invalid item", ask("x"), "bad_item", "expected an object", "input[0]"],
    ["an item without a type", ask({ content: "x" }), "bad_item", "Missing required", "input[0].type"],
    [
      "an item of an unknown type",
      ask({ type: "thinking" }),
      "bad_item",
      "Invalid value: 'thinking'",
      "input[0].type",
    ],
    [
      "fields of Skein",
      ask({ ...user(), timestamp: 1 }),
      "unknown_parameter",
      "input[0].timestamp",
      "input[0].timestamp",
    ],
    [
      "details of a result",
      ask(user(), call("a"), { ...output("a"), details: 1 }),
      "unknown_parameter",
      "details",
      "input[2].details",
    ],
  ])("[TWA1] a request that does not match the API is refused: %s", (_, body, rule, part, param) => {
    expectRefusal(body, rule, part, param);
  });

  test("[TWA1] a conversation is not found, because nothing is stored", () => {
    expectRefusal({ ...ask(user()), conversation: "conv_1" }, "unknown_conversation", "not found", null, 404);
  });

  test.each([
    ["in a message", image(images.png.replace("png", "gif")), "image_type_mismatch"],
    ["that are animated", image(images.animatedGif), "image_animated"],
    ["with invalid base64", image("data:image/png;base64,%%%%"), "image_not_base64"],
  ])("[TWA1] images %s", (_, item, rule) => {
    expectRefusal(ask(item), rule, "", "input[0].content[0].image_url");
  });

  test("[TWA1] images in an output are checked too", () => {
    const bad = output("a", [
      { type: "input_image", image_url: images.of("image/tiff", Buffer.from("II*")) },
    ]);
    expectRefusal(ask(user(), call("a"), bad), "image_type_unsupported", "", "input[2].output[0].image_url");
  });

  test("[TWA1] a request must not end in an assistant turn", () => {
    expectRefusal(ask(user(), said()), "last_item_assistant", "last item");
  });

  test("[TWA1] a request longer than the context window is refused, unless truncation is allowed", () => {
    const long = ask(user("a".repeat(4_000)));
    expect(check(long, 1_100)).toBeNull();
    expect(check({ ...long, truncation: "auto" }, 1_000)).toBeNull();
    expect(check(long, 1_000)).toEqual({
      status: 400,
      rule: "context_length",
      body: {
        error: {
          message:
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
          type: "invalid_request_error",
          param: "input",
          code: "context_length_exceeded",
        },
      },
    });
  });
});

describe("content", () => {
  test.each([
    [
      "the role tool",
      ask({ role: "tool", content: "x" }),
      "bad_role",
      "Supported values are: 'assistant', 'system', 'developer', and 'user'.",
      "input[0].role",
    ],
    ["a blank user message", ask(user("")), "empty_content", "empty string", "input[0].content"],
    [
      "a blank part",
      ask(user([{ type: "input_text", text: "\t" }])),
      "empty_content",
      "empty string",
      "input[0].content[0].text",
    ],
    ["no parts", ask(user([])), "empty_content", "empty array", "input[0].content"],
    ["no content", ask({ role: "user" }), "empty_content", "Missing required", "input[0].content"],
    ["content of another type", ask(user(null)), "bad_content", "but got null", "input[0].content"],
    [
      "a blank assistant message",
      ask(user(), said(" "), user()),
      "empty_content",
      "empty string",
      "input[1].content",
    ],
    [
      "parts of the other side",
      ask(user(), said([{ type: "input_text", text: "x" }]), user()),
      "bad_part",
      "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
      "input[1].content[0]",
    ],
    [
      "unknown fields of a part",
      ask(user([{ type: "input_text", text: "x", cache_control: {} }])),
      "unknown_parameter",
      "cache_control",
      "input[0].content[0].cache_control",
    ],
    [
      "an image without data",
      ask(image(undefined)),
      "bad_part",
      "Missing required",
      "input[0].content[0].image_url",
    ],
    [
      "an output without content",
      ask(user(), call("a"), { type: "function_call_output", call_id: "a" }),
      "bad_output",
      "Missing required",
      "input[2].output",
    ],
    [
      "a long text",
      ask(user(), call("a"), output("a", "x".repeat(10_485_761))),
      "text_too_long",
      "maximum length 10485760",
      "input[2].output",
    ],
  ])("[TWA1] contents: %s", (_, body, rule, part, param) => {
    expectRefusal(body, rule, part, param);
  });
});

describe("items", () => {
  test.each([
    [
      "a bad name",
      ask(user(), call("a", "fs.read"), output("a")),
      "bad_function_name",
      "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
      "input[1].name",
    ],
    [
      "arguments that are not JSON",
      ask(user(), call("a", "look", "{"), output("a")),
      "bad_arguments",
      "JSON object",
      "input[1].arguments",
    ],
    [
      "arguments that are not a string",
      ask(user(), { ...call("a"), arguments: {} }),
      "bad_arguments",
      "but got an object",
      "input[1].arguments",
    ],
    [
      "a call id of 65 characters",
      ask(user(), call("x".repeat(65)), output("x".repeat(65))),
      "bad_call_id",
      "Expected a string with maximum length 64, but got a string with length 65 instead.",
      "input[1].call_id",
    ],
    [
      "no call id",
      ask(user(), { type: "function_call", name: "n", arguments: "{}" }),
      "bad_call_id",
      "Missing required",
      "input[1].call_id",
    ],
    [
      "a malformed ID of a call",
      ask(user(), { ...call("a"), id: "call_1" }, output("a")),
      "bad_item_id",
      "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
      "input[1].id",
    ],
    [
      "a malformed ID of a message",
      ask(user(), { type: "message", id: "x", ...said() }, user()),
      "bad_item_id",
      "begins with 'msg'",
      "input[1].id",
    ],
    [
      "a malformed ID of reasoning",
      ask(user(), reasoning("xx_1"), said(), user()),
      "bad_item_id",
      "begins with 'rs'",
      "input[1].id",
    ],
    [
      "a repeated item",
      ask(user(), reasoning("rs_1"), said(), reasoning("rs_1"), said(), user()),
      "duplicate_item",
      "Duplicate item found with id rs_1.",
      "input",
    ],
  ])("[TWA1] IDs, names and arguments: %s", (_, body, rule, part, param) => {
    expectRefusal(body, rule, part, param);
  });

  test("[TWA1] a call ID of 64 characters is accepted unchanged", () => {
    const id = `${"x".repeat(60)}|.é `;
    expectRefusal(ask(user(), call(id), output(id)), null);
  });
});

describe("pairing", () => {
  test.each([
    [
      "an output without a call",
      ask(user(), output("a")),
      "tool_result_without_call",
      "No tool call found for function call output with call_id a.",
    ],
    [
      "an output before its call",
      ask(user(), output("a"), call("a")),
      "tool_result_without_call",
      "No tool call found",
    ],
    [
      "a repeated output",
      ask(user(), call("a"), output("a"), output("a")),
      "tool_result_without_call",
      "No tool call found",
    ],
    [
      "an output of another kind",
      ask(user(), call("a"), { type: "custom_tool_call_output", call_id: "a", output: "x" }),
      "tool_result_without_call",
      "No tool call found for custom tool call output with call_id a.",
    ],
    [
      "a call without an output",
      ask(user(), call("a"), call("b"), output("a"), user()),
      "tool_call_without_result",
      "No tool output found for function call b.",
    ],
    [
      "a call at the end",
      ask(user(), call("a")),
      "tool_call_without_result",
      "No tool output found for function call a.",
    ],
  ])("[TWA1] calls and outputs: %s", (_, body, rule, part) => {
    expectRefusal(body, rule, part, "input");
  });

  test("[TWA1] a call ID identifies one call in the whole request", () => {
    const twice = ask(user(), call("a"), output("a"), call("a"), output("a"));
    expectRefusal(twice, "duplicate_call_id", "duplicate call_id 'a'", "input[3].call_id");
  });
});

describe("values of other types", () => {
  /** Requests in which one field has a value of the wrong type or is missing. */

  const part = (value: unknown) => ask(user([value]));
  const called = (more: object) => ask(user(), { ...call("a"), ...more }, output("a"));
  const thought = (more: object) => ask(user(), reasoning("rs_1", { ...more }), said(), user());
  const tools = (...list: unknown[]) => ({ ...ask(user()), tools: list });
  const long = `{"a":"${"x".repeat(10_485_760)}"}`;

  test.each([
    [ask({ type: "message", content: "x" }), "Missing required parameter: 'input[0].role'."],
    [ask({ type: ["message"], content: "x" }), "Invalid type for 'input[0].type': expected one of 'message'"],
    [part("x"), "Invalid type for 'input[0].content[0]': expected an object, but got a string instead."],
    [part({ text: "x" }), "Missing required parameter: 'input[0].content[0].type'."],
    [part({ type: "input_text" }), "Missing required parameter: 'input[0].content[0].text'."],
    [
      part({ type: "input_text", text: 7 }),
      "Invalid type for 'input[0].content[0].text': expected a string, but got an integer instead.",
    ],
    [
      part({ type: "input_image", image_url: { url: "x" } }),
      "Invalid type for 'input[0].content[0].image_url': expected a string, but got an object instead.",
    ],
    [
      ask(user(), said([{ type: "refusal" }]), user()),
      "Missing required parameter: 'input[1].content[0].refusal'.",
    ],
    [called({ id: 7 }), "Invalid type for 'input[1].id': expected a string, but got an integer instead."],
    [
      called({ call_id: 7 }),
      "Invalid type for 'input[1].call_id': expected a string, but got an integer instead.",
    ],
    [called({ call_id: "" }), "Invalid 'input[1].call_id': empty string."],
    [called({ arguments: undefined }), "Missing required parameter: 'input[1].arguments'."],
    [called({ arguments: long }), "Invalid 'input[1].arguments': string too long."],
    [called({ details: 1 }), "Unknown parameter: 'input[1].details'."],
    [thought({ signature: "x" }), "Unknown parameter: 'input[1].signature'."],
    [thought({ summary: undefined }), "Missing required parameter: 'input[1].summary'."],
    [
      thought({ summary: "x" }),
      "Invalid type for 'input[1].summary': expected an array of objects, but got a string instead.",
    ],
    [
      thought({ summary: ["x"] }),
      "Invalid type for 'input[1].summary[0]': expected an object, but got a string instead.",
    ],
    [
      thought({ summary: [{ type: "summary_text" }] }),
      "Invalid type for 'input[1].summary[0].text': expected a string, but got null instead.",
    ],
    [
      thought({ encrypted_content: 7 }),
      "Invalid type for 'input[1].encrypted_content': expected a string, but got an integer instead.",
    ],
    [tools("x"), "Invalid type for 'tools[0]': expected an object, but got a string instead."],
    [tools({ name: "look" }), "Missing required parameter: 'tools[0].type'."],
  ])("[TWA1] %#: each path reports what is wrong with it", (body, message) => {
    expect(check(body)?.body).toMatchObject({ error: { message: expect.stringContaining(message) } });
  });

  test("[TWA1] reasoning without an ID is accepted anywhere", () => {
    expect(check(ask(user(), reasoning("rs_1", { id: undefined }), user()))).toBeNull();
  });

  test("[TWA1] files are accepted unchanged", () => {
    expect(check(part({ type: "input_file", file_id: "file-1" }))).toBeNull();
  });
});
