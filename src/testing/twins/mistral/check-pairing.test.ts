import { test } from "vitest";
import {
  a,
  b,
  call,
  calls,
  chat,
  expectRefusal,
  result,
  said,
  user,
} from "../../../../test/support/twin-mistral.ts";

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
    "a result of no call",
    chat(user(), calls(call(a)), result(b)),
    "tool_result_without_call",
    `Unexpected tool call id ${b} in tool results`,
  ],
  [
    "a result behind an answer without calls",
    chat(user(), said(), result(a)),
    "tool_result_without_call",
    `Unexpected tool call id ${a}`,
  ],
  [
    "a result without id",
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
])("[TWB19] calls and results: %s", (_, body, rule, part) => {
  expectRefusal(body, rule, part, "3230");
});
