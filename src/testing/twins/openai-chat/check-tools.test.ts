import { test } from "vitest";
import { chat, expectRefusal, user } from "../../../../test/support/twin-chat.ts";

const tool = (name: string) => ({ type: "function", function: { name } });

test.each([
  ["no tools in the list", { tools: [] }, "bad_tools", "Invalid 'tools': empty array."],
  [
    "too many tools",
    { tools: Array.from({ length: 129 }, (_, index) => tool(`t${index}`)) },
    "bad_tools",
    "maximum length 128",
  ],
  ["a bad name", { tools: [tool("a b")] }, "bad_function_name", "tools[0].function.name"],
  ["a tool without function", { tools: [{ type: "function" }] }, "bad_tools", "'tools[0].function'"],
  [
    "a choice without tools",
    { tool_choice: "required" },
    "tool_choice_without_tools",
    "only allowed when 'tools' are specified",
  ],
  [
    "stream options without a stream",
    { stream_options: {} },
    "stream_options_without_stream",
    "only allowed when 'stream' is enabled",
  ],
  [
    "unknown stream options",
    { stream: true, stream_options: { a: 1 } },
    "unknown_parameter",
    "stream_options.a",
  ],
])("[TWB7] tools and stream options: %s", (_, more, rule, part) => {
  expectRefusal({ ...chat(user()), ...more }, rule, part);
});
