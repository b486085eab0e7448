import { test } from "vitest";
import {
  ask,
  call,
  expectRefusal,
  image,
  output,
  said,
  user,
} from "../../../../test/support/twin-responses.ts";

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
