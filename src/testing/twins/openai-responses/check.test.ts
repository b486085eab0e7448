import { expect, test } from "vitest";
import { images, posted } from "../../../../test/support/twin-fetch.ts";
import { sealReasoning } from "./encrypted-content.ts";
import { openaiResponses } from "./format.ts";

type Body = Record<string, unknown>;

const check = (body: unknown, contextWindow = 100_000) =>
  openaiResponses.check(posted("/v1/responses", body), { contextWindow });

const user = (content: unknown = "Plan three days in Kyoto") => ({ role: "user", content });
const said = (content: unknown = "Gladly.") => ({ role: "assistant", content });
const call = (id: string, name = "look", text = "{}") => ({
  type: "function_call",
  call_id: id,
  name,
  arguments: text,
});
const output = (id: string, result: unknown = "found") => ({
  type: "function_call_output",
  call_id: id,
  output: result,
});
const reasoning = (id: string, more: Body = {}) => ({
  type: "reasoning",
  id,
  summary: [{ type: "summary_text", text: "Temples first." }],
  encrypted_content: sealReasoning("gpt-5", id),
  ...more,
});
const ask = (...input: unknown[]): Body => ({ model: "gpt-5", store: false, input });
const image = (url: unknown) => user([{ type: "input_image", image_url: url }]);

/** `null` in the place of the rule: taken. */
function expectRefusal(body: unknown, rule: string | null, part = "", param?: string | null, status = 400) {
  const refusal = check(body);
  expect(refusal?.rule ?? null).toBe(rule);
  if (refusal === null) return;
  const { error } = refusal.body as { error: Body };
  expect(refusal.status).toBe(status);
  expect(error.type).toBe("invalid_request_error");
  expect(error.message).toContain(part);
  if (param !== undefined) expect(error.param).toBe(param);
}

test("[TWB1] only a POST on its own path is served", () => {
  expect(openaiResponses.serves(posted("/v1/responses", {}))).toBe(true);
  expect(openaiResponses.serves(posted("/v1/chat/completions", {}))).toBe(false);
});

test.each([
  ["a text", { model: "gpt-5", input: "Plan" }],
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
  [
    "a role of a tool",
    ask({ role: "tool", content: "x" }),
    "bad_role",
    "Supported values are: 'assistant', 'system', 'developer', and 'user'.",
    "input[0].role",
  ],
  ["a blank user", ask(user("")), "empty_content", "empty string", "input[0].content"],
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
  ["a blank assistant", ask(user(), said(" "), user()), "empty_content", "empty string", "input[1].content"],
  [
    "parts of the wrong side",
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
    "an image of nothing",
    ask(image(undefined)),
    "bad_part",
    "Missing required",
    "input[0].content[0].image_url",
  ],
  [
    "an output of nothing",
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
])("[TWB11] contents: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});

test.each([
  [
    "a bad name",
    ask(user(), call("a", "fs.read"), output("a")),
    "bad_function_name",
    "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    "input[1].name",
  ],
  [
    "arguments that are no JSON",
    ask(user(), call("a", "look", "{"), output("a")),
    "bad_arguments",
    "JSON object",
    "input[1].arguments",
  ],
  [
    "arguments that are no text",
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
    "an id of a call",
    ask(user(), { ...call("a"), id: "call_1" }, output("a")),
    "bad_item_id",
    "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
    "input[1].id",
  ],
  [
    "an id of a message",
    ask(user(), { type: "message", id: "x", ...said() }, user()),
    "bad_item_id",
    "begins with 'msg'",
    "input[1].id",
  ],
  [
    "an id of reasoning",
    ask(user(), reasoning("xx_1"), said(), user()),
    "bad_item_id",
    "begins with 'rs'",
    "input[1].id",
  ],
  [
    "an item twice",
    ask(user(), reasoning("rs_1"), said(), reasoning("rs_1"), said(), user()),
    "duplicate_item",
    "Duplicate item found with id rs_1.",
    "input",
  ],
])("[TWB12] ids, names and arguments: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});

test("[TWB12] a call id of 64 characters is taken as it is", () => {
  const id = `${"x".repeat(60)}|.é `;
  expectRefusal(ask(user(), call(id), output(id)), null);
});

test.each([
  [
    "an output without call",
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
    "an output twice",
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
    "a call without output",
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
])("[TWB13] calls and outputs: %s", (_, body, rule, part) => {
  expectRefusal(body, rule, part, "input");
});

test("[TWB13] a call id means one call in the whole request", () => {
  const twice = ask(user(), call("a"), output("a"), call("a"), output("a"));
  expectRefusal(twice, "duplicate_call_id", "duplicate call_id 'a'", "input[3].call_id");
});

const persisted = "Items are not persisted when `store` is set to false. Try again with `store` set to true";

test.each([
  [
    "without its content where nothing is stored",
    ask(user(), reasoning("rs_1", { encrypted_content: null }), said(), user()),
    "item_not_found",
    `Item with id 'rs_1' not found. ${persisted}`,
    404,
  ],
  [
    "without its content where it was never stored",
    { ...ask(user(), reasoning("rs_1", { encrypted_content: null }), said(), user()), store: true },
    "item_not_found",
    "Item with id 'rs_1' not found.",
    404,
  ],
  [
    "referred to",
    ask(user(), { type: "item_reference", id: "rs_1" }, said(), user()),
    "item_not_found",
    persisted,
    404,
  ],
  [
    "of another model",
    ask(user(), reasoning("rs_1", { encrypted_content: sealReasoning("o3", "rs_1") }), said(), user()),
    "invalid_encrypted_content",
    "The encrypted content for item rs_1 could not be verified.",
    400,
  ],
  [
    "of another item",
    ask(user(), reasoning("rs_1", { encrypted_content: sealReasoning("gpt-5", "rs_2") }), said(), user()),
    "invalid_encrypted_content",
    "Encrypted content item_id did not match the target item id.",
    400,
  ],
  [
    "forged",
    ask(user(), reasoning("rs_1", { encrypted_content: "gAAAAAforged" }), said(), user()),
    "invalid_encrypted_content",
    "could not be decrypted or parsed",
    400,
  ],
  [
    "forged, without id",
    ask(user(), { type: "reasoning", summary: [], encrypted_content: "gAAAAAforged" }, said(), user()),
    "invalid_encrypted_content",
    "gAAA...rged",
    400,
  ],
  [
    "at the end",
    ask(user(), reasoning("rs_1")),
    "reasoning_without_item",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    400,
  ],
  [
    "before a user",
    ask(user(), reasoning("rs_1"), user()),
    "reasoning_without_item",
    "required following item",
    400,
  ],
  [
    "before an output",
    ask(user(), call("a"), reasoning("rs_1"), output("a")),
    "reasoning_without_item",
    "required following item",
    400,
  ],
  [
    "without summary",
    ask(user(), { type: "reasoning", id: "rs_1" }, said(), user()),
    "bad_reasoning",
    "'input[1].summary'",
    400,
  ],
  [
    "with a summary of another kind",
    ask(user(), reasoning("rs_1", { summary: [{ type: "text", text: "x" }] }), said(), user()),
    "bad_reasoning",
    "Supported values are: 'summary_text'.",
    400,
  ],
  [
    "without id and content",
    ask(user(), { type: "reasoning", summary: [] }, said(), user()),
    "bad_reasoning",
    "'input[1].id'",
    400,
  ],
])("[TWB14] reasoning %s is refused", (_, body, rule, part, status) => {
  expectRefusal(body, rule, part, undefined, status);
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
