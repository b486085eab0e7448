import { expect, test } from "vitest";
import { images, posted } from "../../../../test/support/twin-fetch.ts";
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
} from "../../../../test/support/twin-responses.ts";
import { openaiResponses } from "./format.ts";

test("[TWB1] only a POST on its own path is served", () => {
  expect(openaiResponses.serves(posted("/v1/responses", {}))).toBe(true);
  expect(openaiResponses.serves(posted("/v1/chat/completions", {}))).toBe(false);
});

test.each([
  ["a text", { model: "gpt-5", input: "Plan" }],
  ["what Codex tells of itself", { model: "gpt-5", input: "Plan", client_metadata: { session_id: "a" } }],
  [
    "messages",
    ask({ role: "developer", content: "Be kind" }, user(), said(), user([{ type: "input_text", text: "x" }])),
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
  ["outputs apart from their calls", ask(user(), call("a"), call("b"), output("b", ""), user(), output("a"))],
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
    "reasoning before what it led to",
    ask(user(), reasoning("rs_1"), said(), user(), reasoning("rs_2"), call("a"), output("a")),
  ],
  [
    "reasoning twice before a call",
    ask(user(), reasoning("rs_1"), reasoning("rs_2"), call("a"), output("a")),
  ],
  ["reasoning without id", ask(user(), reasoning("rs_1", { id: undefined }), said(), user())],
  ["reasoning where items are stored", { ...ask(user(), reasoning("rs_1"), said(), user()), store: true }],
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
])("[TWB10] what is right is taken: %s", (_, body) => {
  expectRefusal(body, null);
});

test.each([
  ["no object", [], "not_json", "could not parse", null],
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
  ["an item that is none", ask("x"), "bad_item", "expected an object", "input[0]"],
  ["an item of no type", ask({ content: "x" }), "bad_item", "Missing required", "input[0].type"],
  [
    "an item of an unknown type",
    ask({ type: "thinking" }),
    "bad_item",
    "Invalid value: 'thinking'",
    "input[0].type",
  ],
  [
    "fields of ours",
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
])("[TWB10] what does not fit the API is refused: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});

test("[TWB10] a conversation is not found, for nothing is stored", () => {
  expectRefusal({ ...ask(user()), conversation: "conv_1" }, "unknown_conversation", "not found", null, 404);
});

test.each([
  ["in a message", image(images.png.replace("png", "gif")), "image_type_mismatch"],
  ["that are animated", image(images.animatedGif), "image_animated"],
  ["that are no base64", image("data:image/png;base64,%%%%"), "image_not_base64"],
])("[TWB6] images %s", (_, item, rule) => {
  expectRefusal(ask(item), rule, "", "input[0].content[0].image_url");
});

test("[TWB6] images in an output are looked at too", () => {
  const bad = output("a", [{ type: "input_image", image_url: images.of("image/tiff", Buffer.from("II*")) }]);
  expectRefusal(ask(user(), call("a"), bad), "image_type_unsupported", "", "input[2].output[0].image_url");
});

test("[TWB15] a request does not end in an assistant's turn", () => {
  expectRefusal(ask(user(), said()), "last_item_assistant", "last item");
});

test("[TWB15] a request longer than the context window is refused, unless it may be cut", () => {
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
