import { test } from "vitest";
import { call, calls, chat, expectRefusal, image, result, user } from "../../../../test/support/twin-chat.ts";
import { images } from "../../../../test/support/twin-fetch.ts";

test.each([
  ["text", chat(user())],
  [
    "system, developer and names",
    chat(
      { role: "system", content: "" },
      { role: "developer", content: [{ type: "text", text: "x" }] },
      { ...user(), name: "ann" },
    ),
  ],
  ["a call and its result", chat(user(), calls(call("a")), result("a"))],
  [
    "calls answered in another order",
    chat(user(), calls(call("a"), call("b")), result("b", ""), result("a"), user()),
  ],
  [
    "text beside calls, two rounds",
    chat(user(), { ...calls(call("a")), content: "I look." }, result("a"), calls(call("b")), result("b")),
  ],
  ["a first turn of the assistant", chat({ role: "assistant", content: "Hi" }, user())],
  [
    "consecutive turns of one role",
    chat(user(), user(), { role: "assistant", content: "a" }, { role: "assistant", content: "b" }, user()),
  ],
  ["a refusal instead of content", chat(user(), { role: "assistant", refusal: "no" }, user())],
  [
    "parts of the assistant",
    chat(user(), { role: "assistant", content: [{ type: "text", text: "a" }] }, user()),
  ],
  [
    "images",
    chat(...[images.png, images.jpeg, images.webp, images.gif, "https://example.org/a.png"].map(image)),
  ],
  [
    "tools, stream and usage",
    {
      ...chat(user()),
      stream: true,
      stream_options: { include_usage: true },
      tool_choice: "auto",
      tools: [{ type: "function", function: { name: "look", parameters: {} } }],
    },
  ],
])("[TWB2] what is right is taken: %s", (_, body) => {
  expectRefusal(body, null);
});

test.each([
  ["no object", "x", "not_json", "could not parse the JSON body", null],
  ["no model", { messages: [user()] }, "missing_model", "you must provide a model parameter", null],
  ["no messages", { model: "m" }, "missing_messages", "Missing required parameter: 'messages'.", "messages"],
  [
    "messages of another type",
    { model: "m", messages: "x" },
    "wrong_type",
    "expected an array of objects, but got a string",
    "messages",
  ],
  ["no message", chat(), "missing_messages", "Invalid 'messages': empty array.", "messages"],
  [
    "an unknown parameter",
    { ...chat(user()), reasoning: {} },
    "unknown_parameter",
    "Unknown parameter: 'reasoning'.",
    "reasoning",
  ],
  ["a message that is none", chat("x"), "wrong_type", "expected an object", "messages[0]"],
  ["no role", chat({ content: "x" }), "bad_role", "Missing required", "messages[0].role"],
  [
    "an unknown role",
    chat({ role: "toolResult", content: "x" }),
    "bad_role",
    "Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
    "messages[0].role",
  ],
  [
    "a role of another type",
    chat({ role: { toString: 1 }, content: "x" }),
    "bad_role",
    "but got an object instead",
    "messages[0].role",
  ],
  [
    "fields of ours",
    chat({ ...user(), timestamp: 1 }),
    "unknown_parameter",
    "Unknown parameter: 'messages[0].timestamp'.",
    "messages[0].timestamp",
  ],
  [
    "reasoning sent back",
    chat(user(), { role: "assistant", content: "x", reasoning_content: "y" }, user()),
    "unknown_parameter",
    "reasoning_content",
    "messages[1].reasoning_content",
  ],
  [
    "details of a result",
    chat(user(), calls(call("a")), { ...result("a"), details: {} }),
    "unknown_parameter",
    "details",
    "messages[2].details",
  ],
])("[TWB2] what does not fit the API is refused: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});
