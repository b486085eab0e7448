import { test } from "vitest";
import { images } from "../../../../test/support/twin-fetch.ts";
import {
  a,
  b,
  call,
  calls,
  chat,
  expectMisfit,
  expectRefusal,
  image,
  result,
  said,
  thinking,
  user,
} from "../../../../test/support/twin-mistral.ts";

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
    "text beside calls, no content, no name",
    chat(
      user(),
      { role: "assistant", tool_calls: [call(a)] },
      { role: "tool", tool_call_id: a, content: "x" },
      { ...calls(call(b)), content: "I look." },
      result(b),
    ),
  ],
  ["arguments as an object", chat(user(), calls(call(a, "look", { place: "Kyoto" })), result(a))],
  ["a first turn of the assistant", chat(said(), user())],
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
  ["a prefix to go on from", chat(user(), { ...said(), prefix: true })],
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
])("[TWB17] what is right is taken: %s", (_, body) => {
  expectRefusal(body, null);
});

test.each([
  ["no object", null, "not_json", "model_attributes_type", []],
  ["no model", { messages: [user()] }, "missing_model", "missing", ["model"]],
  ["no messages", { model: "m" }, "missing_messages", "missing", ["messages"]],
  ["messages of another type", { model: "m", messages: {} }, "missing_messages", "list_type", ["messages"]],
  [
    "parameters of others",
    { ...chat(user()), max_completion_tokens: 9 },
    "extra_field",
    "extra_forbidden",
    ["max_completion_tokens"],
  ],
  ["a message that is none", chat(7), "wrong_type", "dictionary_type", ["messages", 0]],
  [
    "a role of others",
    chat({ role: "developer", content: "x" }),
    "bad_role",
    "union_tag_invalid",
    ["messages", 0],
  ],
  ["no role", chat({ content: "x" }), "bad_role", "union_tag_not_found", ["messages", 0]],
  [
    "a role that every object has",
    chat({ role: "constructor", content: "x" }),
    "bad_role",
    "union_tag_invalid",
    ["messages", 0],
  ],
  [
    "fields of others",
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
    "no content of a user",
    chat({ role: "user" }),
    "missing_parameter",
    "missing",
    ["messages", 0, "user", "content"],
  ],
  [
    "no content of a result",
    chat(user(), calls(call(a)), result(a, null)),
    "missing_parameter",
    "missing",
    ["messages", 2, "tool", "content"],
  ],
  ["content of another type", chat(user(7)), "wrong_type", "string_type", ["messages", 0, "user", "content"]],
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
    "a chunk with more",
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
    "thinking as a text",
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
    "thinking of no text",
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
])("[TWB17] what does not fit the schema is answered with 422: %s", (_, body, rule, type, loc) => {
  expectMisfit(body, rule, type, loc);
});

test.each([
  ["no content", { role: "assistant" }],
  ["an empty text", said("")],
  ["a blank text", said(" \n ")],
  ["no chunks", said([])],
  ["a blank chunk", said([thinking([]), { type: "text", text: "" }])],
  ["no calls", { ...said(""), tool_calls: [] }],
])("[TWB21] an assistant that says nothing and calls nothing is refused: %s", (_, message) => {
  const part = "Assistant message must have either content or tool_calls, but not none.";
  expectRefusal(chat(user(), message, user()), "empty_content", part, "3240");
});

test.each([
  ["an empty text", user("")],
  ["no chunks", user([])],
  ["a blank chunk", user([image(images.png), { type: "text", text: " " }])],
])("[TWB21] a user who says nothing is refused: %s", (_, message) => {
  expectRefusal(chat(message), "empty_content", "User message must have content.");
});

test("[TWB21] a prefix stands last", () => {
  const body = chat(user(), { ...said(), prefix: true }, user());
  expectRefusal(body, "prefix_not_last", "Assistant message with prefix True must be last message", "3240");
});
