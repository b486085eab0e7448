import { test } from "vitest";
import { call, calls, chat, expectRefusal, result, user } from "../../../../test/support/twin-chat.ts";

test.each([
  [
    "a result first",
    chat(user(), result("a")),
    "tool_result_without_call",
    "must be a response to a preceeding message with 'tool_calls'.",
    "messages.[1].role",
  ],
  [
    "a result of another call",
    chat(user(), calls(call("a")), result("b")),
    "tool_result_without_call",
    "'tool_call_id' of 'b' not found in 'tool_calls' of previous message",
    "messages.[2].tool_call_id",
  ],
  [
    "a result twice",
    chat(user(), calls(call("a"), call("b")), result("a"), result("a")),
    "duplicate_call_id",
    "Duplicate value for 'tool_call_id' of 'a'",
    "messages.[3]",
  ],
  [
    "a call without result",
    chat(user(), calls(call("a"), call("b")), result("a"), user()),
    "tool_call_without_result",
    "did not have response messages: b",
    "messages.[3].role",
  ],
  [
    "calls at the end",
    chat(user(), calls(call("a"))),
    "tool_call_without_result",
    "did not have response messages: a",
    "messages",
  ],
  [
    "something between",
    chat(user(), calls(call("a")), user(), result("a")),
    "tool_call_without_result",
    "responding to each 'tool_call_id'",
    "messages.[2].role",
  ],
  [
    "a result too late",
    chat(user(), calls(call("a")), result("a"), user(), result("a")),
    "tool_result_without_call",
    "preceeding",
    "messages.[4].role",
  ],
  [
    "an id twice in one turn",
    chat(user(), calls(call("a"), call("a")), result("a")),
    "duplicate_call_id",
    "Duplicate value",
    "messages.[1]",
  ],
  [
    "an id twice in the request",
    chat(user(), calls(call("a")), result("a"), calls(call("a")), result("a")),
    "duplicate_call_id",
    "Duplicate value",
    "messages.[3]",
  ],
])("[TWB4] calls and results: %s", (_, body, rule, part, param) => {
  expectRefusal(body, rule, part, param);
});
