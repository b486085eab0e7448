import { test } from "vitest";
import { call, calls, chat, expectRefusal, result, user } from "../../../../test/support/twin-chat.ts";

const called = (...parts: Parameters<typeof call>) => chat(user(), calls(call(...parts)), result(parts[0]));

test.each([
  ["an id of 40 characters", called("x".repeat(40)), null],
  [
    "an id of 41 characters",
    called("x".repeat(41)),
    "bad_call_id",
    "Expected a string with maximum length 40, but got a string with length 41 instead.",
  ],
  ["an empty id", called(""), "bad_call_id", "empty string"],
  [
    "no id",
    chat(user(), calls({ ...call("a"), id: undefined }), result("a")),
    "bad_call_id",
    "Missing required parameter: 'messages[1].tool_calls[0].id'.",
  ],
  [
    "a result without id",
    chat(user(), calls(call("a")), { role: "tool", content: "x" }),
    "bad_call_id",
    "messages[2].tool_call_id",
  ],
  ["a name of 64 characters", called("a", "n".repeat(64)), null],
  ["a name of 65 characters", called("a", "n".repeat(65)), "bad_function_name", "maximum length 64"],
  [
    "a name with a dot",
    called("a", "fs.read"),
    "bad_function_name",
    "matches the pattern '^[a-zA-Z0-9_-]+$'",
  ],
  ["no name", called("a", ""), "bad_function_name", "empty string"],
  [
    "arguments that are no JSON",
    called("a", "look", "{"),
    "bad_arguments",
    "messages[1].tool_calls[0].function.arguments",
  ],
  ["arguments that are a list", called("a", "look", "[]"), "bad_arguments", "JSON object"],
  [
    "a call of no type",
    chat(user(), calls({ ...call("a"), type: "x" })),
    "bad_call_type",
    "'function' and 'custom'",
  ],
  [
    "fields of a stream",
    chat(user(), calls({ ...call("a"), index: 0 })),
    "unknown_parameter",
    "'messages[1].tool_calls[0].index'",
  ],
  [
    "a custom call",
    chat(user(), calls({ id: "a", type: "custom", custom: { name: "c", input: "x" } }), result("a")),
    null,
  ],
])("[TWB5] ids, names and arguments: %s", (_, body, rule, part = "") => {
  expectRefusal(body, rule, part);
});
