import { test } from "vitest";
import { ask, call, expectRefusal, output, user } from "../../../../test/support/twin-responses.ts";

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
