import { test } from "vitest";
import { a, call, calls, chat, expectRefusal, result, user } from "../../../../test/support/twin-mistral.ts";

test.each([
  [
    "an id of OpenAI's",
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
    "a bad name of a result",
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
    "arguments that are no JSON",
    chat(user(), calls(call(a, "look", "{")), result(a)),
    "bad_arguments",
    "JSON object",
  ],
])("[TWB20] ids, names and arguments: %s", (_, body, rule, part) => {
  expectRefusal(body, rule, part, "3280");
});
